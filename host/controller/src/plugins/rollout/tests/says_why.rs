//! A revision says why it is at its stage.

use super::*;

/// The message of the second revision after the next step.
fn said(world: &mut World) -> String {
    world.act();
    let at = world.at(2);
    world.revisions[at].message.clone()
}

#[test]
fn what_was_compared() {
    for (not_compared, more) in [(0, ""), (2, ", and 2 could not be compared")] {
        let all = vec![
            revision(1, "a", Some(Stage::Running)),
            revision(2, "b", Some(Stage::Shadow)),
        ];
        let mut world = World::of(all, "b");
        world.known.comparison = Some(Comparison {
            not_compared,
            ..differs(1, 0)
        });
        let why = "1 of the compared TrainJobs and runtimes would render differently";
        assert_eq!(
            said(&mut world),
            format!("{why}{more}; it has 10 % of the namespaces")
        );
    }
}

#[test]
fn whether_somebody_has_accepted_what_fails() {
    let accepts = "the annotation trainyard.dev/accept=failures accepts the TrainJobs that fail";
    let none = "no TrainJob of the share fails because of it";
    for (train_jobs, not_compared, why) in [(0, 0, none), (1, 0, accepts), (0, 1, accepts)] {
        let mut world = share();
        world.revisions[1].asked.accept_failures = true;
        world.known.failures = Failures {
            train_jobs,
            not_compared,
            ..Failures::default()
        };
        assert_eq!(said(&mut world), why, "{train_jobs} {not_compared}");
        assert_eq!(world.stage(2), Some(Stage::Running));
    }
}

#[test]
fn that_it_was_deleted_or_takes_the_place_of_a_deleted_one() {
    let running = revision(1, "a", Some(Stage::Running));
    let mut world = World::of(vec![running.clone()], "a");
    world.delete(0);
    assert_eq!(world.act(), Next::Recreate(1));
    world.act();
    let message = world.revisions[0].message.clone();
    assert!(message.starts_with("it ran and was deleted"), "{message}");

    let previous = revision(2, "b", Some(Stage::Previous));
    let mut world = World::of(vec![previous, revision(3, "c", Some(Stage::Running))], "c");
    world.delete(1);
    let message = said(&mut world);
    assert!(
        message.contains("the one before it runs again"),
        "{message}"
    );
}
