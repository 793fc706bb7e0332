//! Screening a corrupt component ends with a result, and never crashes the host. These tests screen in this process, because a
//! process for each of thousands of components would be too slow.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::{
    hash::{BuildHasher, RandomState},
    path::Path,
};

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

use super::*;

/// A plugin with a transform that does nothing.
fn component() -> Vec<u8> {
    let core = r#"(module
        (import "trainyard:policy/context@VERSION" "[method]context.info" (func (param i32) (result i32)))
        (import "trainyard:policy/context@VERSION" "[method]context.because" (func (param i32 i32 i32)))
        (memory (export "memory") 4)
        (global $heap (mut i32) (i32.const 65536))
        (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (local $at i32)
            (local.set $at (i32.and (i32.add (global.get $heap) (i32.const 7)) (i32.const -8)))
            (global.set $heap (i32.add (local.get $at) (local.get 3)))
            (local.get $at))
        (func (export "trainyard:policy/transform@VERSION#transform") (param i32) (result i32)
            (i32.const 64)))"#;
    let core = core.replace("VERSION", OURS.version());
    let mut module = wat::parse_str(core).unwrap();
    let mut resolve = Resolve::default();
    let wit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit");
    resolve.push_dir(wit).unwrap();
    let mut worlds = resolve.worlds.iter();
    let (world, _) = worlds.find(|(_, it)| it.name == "transformer").unwrap();
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
    let mut encoder = ComponentEncoder::default().module(&module).unwrap();
    let mut component = encoder.encode().unwrap();
    let manifest = format!(
        r#"{{"name":"mole","version":"0.3.1","contract":"{}","activeWhen":"always","phases":["transform"]}}"#,
        OURS.version()
    );
    let section = wasm_encoder::CustomSection {
        name: trainyard_model::manifest::SECTION.into(),
        data: manifest.into_bytes().into(),
    };
    wasm_encoder::ComponentSection::append_to_component(&section, &mut component);
    component
}

/// Screens a component in this process.
fn screen_here(bytes: &[u8]) -> Result<Screened, ScreenError> {
    let outlined = Outlined::new(bytes.to_vec(), &LoadLimits::default(), &OURS)?;
    let surface = Surface::of(&outlined.bytes, &OURS);
    outlined.screened(surface)
}

/// A sequence of numbers that is new in each run.
struct Numbers(u64);

impl Numbers {
    /// Begins with the number in `PROPTEST_RNG_SEED`, as property tests do, or with a new one, and prints it.
    fn new() -> Self {
        let given = std::env::var("PROPTEST_RNG_SEED").ok();
        let given = given.and_then(|seed| seed.parse::<u64>().ok());
        let seed = given.unwrap_or_else(|| RandomState::new().hash_one(0));
        eprintln!("PROPTEST_RNG_SEED={seed} repeats this run");
        // It must not be 0.
        let mut numbers = Self(seed | 1 << 63);
        (0..8).for_each(|_| {
            numbers.next(1);
        });
        numbers
    }

    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below as u64) as usize
    }
}

#[test]
fn whole_components_pass() {
    assert_eq!(screen_here(&component()).unwrap().imports.len(), 2);
}

#[test]
fn corrupt_bytes_never_crash_screening() {
    let whole = component();
    let mut numbers = Numbers::new();
    let mut refused = 0;
    for _ in 0..6000 {
        let mut bytes = whole.clone();
        for _ in 0..=numbers.next(3) {
            let at = numbers.next(bytes.len());
            bytes[at] = numbers.next(256) as u8;
        }
        refused += u32::from(screen_here(&bytes).is_err());
    }
    assert!(refused > 1000, "{refused}");
}

#[test]
fn truncated_files_are_refused() {
    let whole = component();
    for length in 0..whole.len() {
        assert!(screen_here(&whole[..length]).is_err());
    }
}
