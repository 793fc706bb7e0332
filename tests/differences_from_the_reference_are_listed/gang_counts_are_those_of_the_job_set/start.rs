//! The order in which the replicated jobs of a JobSet start, if a scheduler holds a group's pods back until all of its members exist.

use std::fmt;

use serde_json::Value;

/// A replicated job.
pub(super) struct Job<'o> {
    pub(super) name: &'o str,
    /// The pods that run at the same time.
    pub(super) pods: u64,
    /// The spec of its pods.
    pub(super) pod: &'o Value,
    /// Whether its pods belong to the group.
    pub(super) is_marked: bool,
    /// Whether its pods are nodes. With MPI, those of the trainer are launchers.
    pub(super) is_node: bool,
    /// The replicated jobs that it waits for, and whether it waits until they have ended.
    waits_for: Vec<(&'o str, bool)>,
}

impl<'o> Job<'o> {
    pub(super) fn all(job_set: &'o Value, is_marked: impl Fn(&Value) -> bool) -> Vec<Self> {
        let spec = &job_set["spec"];
        let jobs = || spec["replicatedJobs"].as_array().into_iter().flatten();
        let is_in_order = spec["startupPolicy"]["startupPolicyOrder"] == "InOrder";
        let name = |job: &'o Value| job["name"].as_str().unwrap();
        let of = |(at, job): (usize, &'o Value)| {
            let before = jobs().take(if is_in_order { at } else { 0 });
            let listed = job["dependsOn"].as_array().into_iter().flatten();
            let listed = listed.map(|one| (name(one), one["status"] == "Complete"));
            let step = "trainer.kubeflow.org/trainjob-ancestor-step";
            Job {
                name: name(job),
                pods: pods(job),
                pod: &job["template"]["spec"]["template"]["spec"],
                is_marked: is_marked(job),
                is_node: job["template"]["metadata"]["labels"][step] == "trainer"
                    || name(job) == "node",
                waits_for: before.map(|one| (name(one), false)).chain(listed).collect(),
            }
        };
        jobs().enumerate().map(of).collect()
    }
}

impl fmt::Debug for Job<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.pods, self.name)
    }
}

/// Returns the number of pods that a replicated job runs at the same time.
fn pods(job: &Value) -> u64 {
    let spec = &job["template"]["spec"];
    let number = |value: &Value, default: u64| value.as_u64().unwrap_or(default);
    let at_once = number(&spec["parallelism"], 1);
    number(&job["replicas"], 1) * at_once.min(number(&spec["completions"], at_once))
}

/// Returns whether a replicated job waits for another one, directly or not.
pub(super) fn waits_for(jobs: &[Job<'_>], job: &Job<'_>, other: &Job<'_>) -> bool {
    job.waits_for.iter().any(|(name, _)| {
        let mut known = jobs.iter();
        let next = known.find(|job| job.name == *name);
        *name == other.name || next.is_some_and(|next| waits_for(jobs, next, other))
    })
}

/// The replicated jobs with pods, by when they start.
#[derive(Debug)]
pub(super) struct Start<'j> {
    /// Those outside of the group that start before its members.
    pub(super) first: Vec<&'j Job<'j>>,
    /// Those of the group that are created before any of its pods runs.
    pub(super) members: Vec<&'j Job<'j>>,
    /// Those that start while the members run, and can stay as long as these.
    pub(super) followers: Vec<&'j Job<'j>>,
}

impl<'j> Start<'j> {
    pub(super) fn of(jobs: &'j [Job<'j>]) -> Self {
        let mut run = Run {
            jobs,
            states: vec![State::Waiting; jobs.len()],
        };
        while let Some(at) = run.next() {
            let is_held = jobs[at].is_marked && jobs[at].pods > 0;
            run.states[at] = if is_held { State::Held } else { State::Over };
        }
        let first = run.in_state(State::Over);
        let members = run.in_state(State::Held);
        for state in &mut run.states {
            if *state == State::Held {
                *state = State::RunsToTheEnd;
            }
        }
        while let Some(at) = run.next().or_else(|| run.end_one()) {
            let has_pods = jobs[at].pods > 0;
            run.states[at] = if has_pods { State::Runs } else { State::Over };
        }
        Self {
            first,
            members,
            followers: run.in_state(State::Runs),
        }
    }
}

/// How far a replicated job is.
#[derive(Clone, Copy, PartialEq)]
enum State {
    /// It waits for others.
    Waiting,
    /// Its pods exist, and the scheduler holds them back.
    Held,
    /// It runs as long as the TrainJob.
    RunsToTheEnd,
    /// It runs, and can end.
    Runs,
    /// It was ready, and has ended if another one waits for that; or it has no pods.
    Over,
}

/// A JobSet that starts.
struct Run<'j> {
    jobs: &'j [Job<'j>],
    /// The state of each replicated job.
    states: Vec<State>,
}

impl<'j> Run<'j> {
    fn state(&self, name: &str) -> State {
        let at = self.jobs.iter().position(|job| job.name == name);
        at.map_or(State::Over, |at| self.states[at])
    }

    /// Returns a replicated job that has nothing left to wait for.
    fn next(&self) -> Option<usize> {
        let is_met = |(name, until_end): &(&str, bool)| match self.state(name) {
            State::Waiting | State::Held => false,
            State::RunsToTheEnd | State::Runs => !until_end,
            State::Over => true,
        };
        self.waiting()
            .find(|at| self.jobs[*at].waits_for.iter().all(is_met))
    }

    /// Ends those that the returned replicated job has to wait for, if there is one that only waits for that.
    fn end_one(&mut self) -> Option<usize> {
        let can_be_met = |(name, until_end): &(&str, bool)| match self.state(name) {
            State::Waiting | State::Held => false,
            State::RunsToTheEnd => !until_end,
            State::Runs | State::Over => true,
        };
        let at = self
            .waiting()
            .find(|at| self.jobs[*at].waits_for.iter().all(can_be_met))?;
        for (name, until_end) in &self.jobs[at].waits_for {
            let other = self.jobs.iter().position(|job| job.name == *name);
            if let Some(other) = other.filter(|_| *until_end) {
                self.states[other] = State::Over;
            }
        }
        Some(at)
    }

    fn waiting(&self) -> impl Iterator<Item = usize> {
        let all = 0..self.jobs.len();
        all.filter(|at| self.states[*at] == State::Waiting)
    }

    /// Returns the replicated jobs with pods in a state.
    fn in_state(&self, state: State) -> Vec<&'j Job<'j>> {
        let all = self.jobs.iter().zip(&self.states);
        all.filter(|(job, of_job)| **of_job == state && job.pods > 0)
            .map(|(job, _)| job)
            .collect()
    }
}
