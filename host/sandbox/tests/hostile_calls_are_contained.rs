//! Whatever a plugin does, its call ends with a typed error that names the plugin, nothing of the call is kept, and the next TrainJob in
//! the same process renders.

use trainyard_model::{
    call::Fault,
    limits::Limits,
    plugin::{Busy, CallFailure, Limit},
    plugin_info::Settings,
};

use crate::common::{
    self, PUT_NNODES, call, contained, good, load, loader, settings, transform, transform_claiming,
};

/// Limits that a test reaches fast. On a busy machine a call can take a minute until it has used its fuel.
fn small() -> Limits {
    Limits {
        wall_clock_ms: 60_000,
        memory_bytes: 4 << 20,
        import_bytes: 64 << 10,
        handles: 1000,
        writes: 100,
        log_lines: 10,
        ..Limits::default()
    }
}

fn limit_of(ended: CallFailure) -> Limit {
    match ended {
        CallFailure::Limit { limit, .. } => limit,
        other => panic!("no limit: {other:?}"),
    }
}

fn fault_of(ended: &CallFailure) -> &Fault {
    match ended {
        CallFailure::Broke(faulted) => &faulted.fault,
        other => panic!("no fault: {other:?}"),
    }
}

fn trap_of(ended: CallFailure) -> (String, Option<String>) {
    match ended {
        CallFailure::Trap { kind, message } => (kind, message),
        other => panic!("no trap: {other:?}"),
    }
}

/// A loop around `body`, for ever.
fn forever(body: &str) -> String {
    format!("(loop $again {body} (br $again))")
}

#[test]
fn well_behaved_plugin_succeeds() {
    common::next_job_renders(&loader());
}

#[test]
fn endless_loop_exhausts_fuel() {
    let ended = contained(&loader(), transform("", &forever("")), small());
    assert_eq!(limit_of(ended), Limit::Fuel(small().fuel));
}

#[test]
fn endless_loop_with_unlimited_fuel_times_out_and_is_retriable() {
    let limits = Limits {
        fuel: u64::MAX,
        wall_clock_ms: 50,
        ..small()
    };
    let ended = contained(&loader(), transform("", &forever("")), limits);
    assert!(ended.is_transient());
    assert!(
        matches!(ended, CallFailure::Busy(Busy::WallClock(50))),
        "{ended:?}"
    );
}

#[test]
fn endless_loop_of_cheap_imports_exhausts_fuel() {
    let body = forever("(call $panic (i32.const 0) (i32.const 0))");
    let ended = contained(&loader(), transform("", &body), small());
    assert_eq!(limit_of(ended), Limit::Fuel(small().fuel));
}

#[test]
fn endless_panic_messages_exhaust_fuel() {
    let body = forever("(call $panic (i32.const 2048) (i32.const 200000))");
    let ended = contained(&loader(), transform("", &body), small());
    assert_eq!(limit_of(ended), Limit::Fuel(small().fuel));
}

#[test]
fn memory_bomb_hits_the_memory_limit() {
    let body = forever("(drop (memory.grow (i32.const 1)))");
    let ended = contained(&loader(), transform("", &body), small());
    assert_eq!(limit_of(ended), Limit::Memory(small().memory_bytes));
}

#[test]
fn table_bomb_hits_the_memory_limit() {
    let table = "(table $t 1 60000 funcref)";
    let body = forever("(drop (table.grow $t (ref.null func) (i32.const 1000)))");
    let limits = Limits {
        memory_bytes: 512 << 10,
        ..small()
    };
    let ended = contained(&loader(), transform(table, &body), limits);
    assert_eq!(limit_of(ended), Limit::Memory(limits.memory_bytes));
}

#[test]
fn deep_recursion_overflows_the_stack() {
    let deep = "(func $deep (param i32) (result i32) (i32.add (call $deep (i32.add (local.get 0) (i32.const 1))) (local.get 0)))";
    let ended = contained(
        &loader(),
        transform(deep, "(drop (call $deep (i32.const 0)))"),
        small(),
    );
    assert!(matches!(limit_of(ended), Limit::Stack(_)));
}

#[test]
fn panic_message_is_reported_without_control_characters() {
    let body = "(call $panic (i32.const 1104) (i32.const 38)) unreachable";
    let (kind, message) = trap_of(contained(&loader(), transform("", body), small()));
    assert!(kind.contains("unreachable"), "{kind}");
    assert_eq!(
        message.as_deref(),
        Some("index out of bounds: \\u{1b}[2Jthe len is 3\\u{0}")
    );
}

#[test]
fn huge_panic_message_is_truncated() {
    let body = "(call $panic (i32.const 2048) (i32.const 200000)) unreachable";
    let fill = r#"(start $fill) (func $fill (memory.fill (i32.const 2048) (i32.const 97) (i32.const 200000)))"#;
    let (_, message) = trap_of(contained(&loader(), transform(fill, body), small()));
    assert!(message.unwrap().chars().count() < 1100);
}

#[test]
fn division_by_zero_is_a_named_trap() {
    let body = "(drop (i32.div_u (i32.const 1) (local.get $i)))";
    let (kind, _) = trap_of(contained(&loader(), transform("", body), small()));
    assert!(kind.contains("divide by zero"), "{kind}");
}

#[test]
fn huge_text_in_a_write_hits_the_byte_limit() {
    let body = "(call $put_env (call $node (local.get $ctx)) (i32.const 1040) (i32.const 10) (i32.const 2048) (i32.const 200000))";
    let ended = contained(&loader(), transform("", body), small());
    assert_eq!(limit_of(ended), Limit::ImportBytes(small().import_bytes));
}

#[test]
fn list_of_aliased_huge_texts_hits_the_byte_limit_early() {
    // 16,384 items of 200,000 bytes each: 3 GB on the host, were they all copied.
    let body = r#"
      (local.set $i (i32.const 0))
      (loop $fill
        (i32.store (i32.add (i32.const 65536) (i32.mul (local.get $i) (i32.const 8))) (i32.const 2048))
        (i32.store (i32.add (i32.const 65540) (i32.mul (local.get $i) (i32.const 8))) (i32.const 200000))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br_if $fill (i32.lt_u (local.get $i) (i32.const 16384))))
      (call $set_command (call $node (local.get $ctx)) (i32.const 65536) (i32.const 16384))"#;
    let claims = r#"{"writes":["pod-sets[*].containers[node].command"]}"#;
    let ended = contained(&loader(), transform_claiming(claims, "", body), small());
    assert!(
        matches!(ended, CallFailure::Trap { .. } | CallFailure::Limit { .. }),
        "{ended:?}"
    );
}

#[test]
fn flood_of_writes_hits_its_limit() {
    let body = format!(
        "(local.set $i (call $node (local.get $ctx))) {}",
        forever(
            "(call $put_env (local.get $i) (i32.const 1040) (i32.const 10) (i32.const 1072) (i32.const 4))"
        )
    );
    let ended = contained(&loader(), transform("", &body), small());
    assert_eq!(limit_of(ended), Limit::Writes(small().writes));
}

#[test]
fn flood_of_handles_hits_its_limit() {
    let body = forever("(drop (call $info (local.get $ctx)))");
    let ended = contained(&loader(), transform("", &body), small());
    assert_eq!(limit_of(ended), Limit::Handles(small().handles));
}

#[test]
fn flood_of_dropped_handles_hits_the_same_limit() {
    let body = forever("(call $drop_container (call $node (local.get $ctx)))");
    let ended = contained(&loader(), transform("", &body), small());
    assert_eq!(limit_of(ended), Limit::Handles(small().handles));
}

#[test]
fn flood_of_log_lines_hits_its_limit() {
    let body = forever(
        "(call $log (local.get $ctx) (i32.const 1088) (i32.const 4) (i32.const 1072) (i32.const 4))",
    );
    let ended = contained(&loader(), transform("", &body), small());
    assert_eq!(limit_of(ended), Limit::LogLines(small().log_lines));
}

#[test]
fn invalid_utf_8_ends_the_call() {
    let body = "(call $because (local.get $ctx) (i32.const 1200) (i32.const 3))";
    let (kind, _) = trap_of(contained(&loader(), transform("", body), small()));
    assert!(kind.contains("utf-8"), "{kind}");
}

#[test]
fn invalid_utf_8_in_a_refusal_ends_the_call() {
    let body = r#"
      (i32.store8 (i32.const 64) (i32.const 1))
      (i32.store (i32.const 68) (i32.const 1200))
      (i32.store (i32.const 72) (i32.const 3))"#;
    let (kind, _) = trap_of(contained(&loader(), transform("", body), small()));
    assert!(kind.contains("utf-8"), "{kind}");
}

#[test]
fn text_outside_the_memory_ends_the_call() {
    let body = "(call $because (local.get $ctx) (i32.const 262140) (i32.const 100))";
    let (kind, _) = trap_of(contained(&loader(), transform("", body), small()));
    assert!(kind.contains("out of bounds"), "{kind}");
}

#[test]
fn unknown_handle_ends_the_call() {
    let body = "(call $put_env (i32.const 77) (i32.const 1040) (i32.const 10) (i32.const 1072) (i32.const 4))";
    trap_of(contained(&loader(), transform("", body), small()));
}

#[test]
fn refusal_is_sanitized_and_not_a_crash() {
    let body = r#"
      (i32.store8 (i32.const 64) (i32.const 1))
      (i32.store (i32.const 68) (i32.const 1104))
      (i32.store (i32.const 72) (i32.const 38))"#;
    match contained(&loader(), transform("", body), small()) {
        CallFailure::Refused(failure) => {
            assert_eq!(
                failure.message,
                "index out of bounds: \\u{1b}[2Jthe len is 3\\u{0}"
            );
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn write_outside_the_claims_names_the_missing_claim() {
    let body = "(call $put_env (call $node (local.get $ctx)) (i32.const 1056) (i32.const 4) (i32.const 1072) (i32.const 4))";
    let ended = contained(&loader(), transform("", body), small());
    let text = ended.to_string();
    assert!(
        matches!(fault_of(&ended), Fault::NotClaimed { .. }),
        "{ended:?}"
    );
    assert!(
        text.starts_with("`container.put-env`: cannot")
            && text.contains("EVIL")
            && text.contains("claims.writes"),
        "{text}"
    );
}

#[test]
fn huge_key_with_control_characters_is_sanitized_in_the_error() {
    // 60,000 bytes of ESC, of `a` and of `"`, as the name of an env var that no claim allows.
    for byte in [27, 97, 34] {
        let body = format!(
            r#"(memory.fill (i32.const 65536) (i32.const {byte}) (i32.const 60000))
            (call $put_env (call $node (local.get $ctx)) (i32.const 65536) (i32.const 60000) (i32.const 1072) (i32.const 4))"#
        );
        let ended = contained(&loader(), transform("", &body), small());
        assert!(
            matches!(
                fault_of(&ended),
                Fault::NotClaimed { .. } | Fault::Argument(_)
            ),
            "{ended:?}"
        );
    }
}

#[test]
fn amplified_text_is_charged_before_it_is_built() {
    // The names of 1,000 pods with 60,000 bytes between each two: 60 MB, were they joined.
    let import = r#"(import "trainyard:policy/pod-set-info@1.0.0" "[method]pod-set.joined-addresses" (func $joined (param i32 i32 i32 i32 i32 i32)))"#;
    let body = r#"
      (drop (call $node (local.get $ctx)))
      (call $joined (i32.load (i32.const 132)) (i32.const 0) (i32.const 1000) (i32.const 65536) (i32.const 60000) (i32.const 256))"#;
    let core =
        common::transform_core("", body).replacen("(module", &format!("(module {import}"), 1);
    let component = common::component_in(&common::contract(), "transformer", &core);
    let component = common::with_custom(
        component,
        "trainyard:manifest",
        common::manifest("transform", common::ENV_CLAIMS).as_bytes(),
    );
    let ended = contained(&loader(), component, small());
    assert_eq!(limit_of(ended), Limit::ImportBytes(small().import_bytes));
}

#[test]
fn read_outside_the_claims_names_the_missing_claim() {
    let body = "(call $args (call $node (local.get $ctx)) (i32.const 256))";
    let ended = contained(&loader(), transform("", body), small());
    let text = ended.to_string();
    assert!(
        matches!(fault_of(&ended), Fault::NotClaimed { .. }),
        "{ended:?}"
    );
    assert!(
        text.starts_with("`container.args`: cannot") && text.contains("claims.reads"),
        "{text}"
    );
}

#[test]
fn write_inside_the_claims_but_outside_the_grants_is_refused() {
    // A mount of a volume that is not the plugin's own: `/` of the volume `node`.
    // This many values are passed in memory, where omitted ones are zero.
    let body = r#"(i32.store (i32.const 2048) (call $node (local.get $ctx)))
        (i32.store (i32.const 2052) (i32.const 1024)) (i32.store (i32.const 2056) (i32.const 4))
        (i32.store (i32.const 2060) (i32.const 1500)) (i32.store (i32.const 2064) (i32.const 1))
        (call $put_mount (i32.const 2048))"#;
    let claims = r#"{"writes":["pod-sets[*].containers[node].mounts[*]"]}"#;
    let loader = loader();
    let plugin = loader
        .load_untrusted(
            transform_claiming(claims, r#"(data (i32.const 1500) "/")"#, body),
            |_| Settings::default(),
        )
        .unwrap();
    let error = call(&plugin).unwrap_err();
    assert!(
        matches!(fault_of(&error.cause), Fault::NotGranted { .. }),
        "{error:?}"
    );
    assert!(error.to_string().contains("mole 0.3.1"), "{error}");
    common::next_job_renders(&loader);
}

#[test]
fn claim_without_a_grant_is_refused_at_load() {
    let claims = r#"{"writes":["pod-sets[*].containers[node].image"]}"#;
    let loader = loader();
    let problem = loader
        .load_untrusted(transform_claiming(claims, "", ""), |_| Settings::default())
        .map(drop)
        .unwrap_err()
        .to_string();
    assert!(
        problem.contains("mole 0.3.1") && problem.contains("image"),
        "{problem}"
    );
    common::next_job_renders(&loader);
}

#[test]
fn calls_leave_no_state_behind() {
    // A guest that counts its calls in a global, and would stop setting the env var after the first.
    let items = "(global $calls (mut i32) (i32.const 0))";
    let body = format!(
        "(if (global.get $calls) (then unreachable)) (global.set $calls (i32.const 1)) {PUT_NNODES}"
    );
    let loader = loader();
    let plugin = load(&loader, transform(items, &body)).unwrap();
    for _ in 0..20 {
        call(&plugin).unwrap();
    }
}

#[test]
fn memory_is_never_shared_between_plugins() {
    // One plugin fills its memory with ones; the other traps where it sees anything in memory that it never wrote.
    let loader = loader();
    let writer = load(
        &loader,
        transform(
            "",
            "(memory.fill (i32.const 65536) (i32.const 1) (i32.const 196608))",
        ),
    )
    .unwrap();
    let body = r#"
      (local.set $i (i32.const 65536))
      (loop $look
        (if (i32.load (local.get $i)) (then unreachable))
        (local.set $i (i32.add (local.get $i) (i32.const 4)))
        (br_if $look (i32.lt_u (local.get $i) (i32.const 262144))))"#;
    let reader = load(&loader, transform("", body)).unwrap();
    for _ in 0..50 {
        call(&writer).unwrap();
        call(&reader).unwrap();
    }
}

#[test]
fn concurrent_calls_are_isolated() {
    let loader = loader();
    let plugin = load(&loader, good()).unwrap();
    let jobs: Vec<u32> = (0..200).collect();
    let mut calls = 0;
    let run = |_: &u32| call(&plugin).is_ok();
    let done: Result<(), u32> = loader.pool().run_in_order(&jobs, run, |job, ok| {
        calls += 1;
        if ok == Ok(true) { Ok(()) } else { Err(*job) }
    });
    assert_eq!((done, calls), (Ok(()), jobs.len()));
    assert!(loader.pool().run(|| call(&plugin).is_ok()));
}

#[test]
fn too_many_concurrent_calls_are_retriable() {
    // The host's pool has room for three calls; these run outside of it, and each takes 300 ms.
    let loader = loader();
    let limits = Limits {
        fuel: u64::MAX,
        wall_clock_ms: 300,
        ..Limits::default()
    };
    let plugin = loader
        .load_untrusted(transform("", &forever("")), |_| settings(limits))
        .unwrap();
    let ends: Vec<CallFailure> = std::thread::scope(|scope| {
        let calls: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| call(&plugin).unwrap_err().cause))
            .collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    assert!(ends.iter().all(CallFailure::is_transient), "{ends:?}");
    assert!(
        ends.iter()
            .any(|end| matches!(end, CallFailure::Busy(Busy::Pool))),
        "{ends:?}"
    );
    common::next_job_renders(&loader);
}
