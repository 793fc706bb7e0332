//! The WebAssembly side: bindings, the allocator and the panic hook. Not for plugin authors.
#![allow(
    unsafe_code,
    missing_docs,
    unreachable_pub,
    clippy::all,
    clippy::pedantic
)]

use std::{
    alloc::{GlobalAlloc, Layout},
    cell::Cell,
};

mod worlds;

pub use self::worlds::{
    builder, checker, transformer,
    transformer::trainyard::policy::{
        context::Context as RawContext, types::Failure as RawFailure,
    },
};

/// Returns the bytes of a string, for a custom section.
pub const fn bytes<const N: usize>(text: &str) -> [u8; N] {
    let mut out = [0; N];
    let mut at = 0;
    while at < N {
        out[at] = text.as_bytes()[at];
        at += 1;
    }
    out
}

/// Sends the message of a panic to the host before the trap.
pub fn set_panic_hook() {
    std::panic::set_hook(Box::new(|info| {
        transformer::trainyard::policy::panics::message(&info.to_string());
    }));
}

/// The bytes that are available without growing the memory. Growing costs more than a whole call.
const ARENA: usize = 192 << 10;

/// An allocator that never frees memory, because an instance lives for one call.
struct Arena {
    memory: std::cell::UnsafeCell<[u8; ARENA]>,
    /// The number of bytes allocated from the arena.
    used: Cell<usize>,
    /// The start and the end of the unused part of the grown memory.
    grown: Cell<(usize, usize)>,
}

// SAFETY: the guest has one thread; the contract's engine disables threads.
unsafe impl Sync for Arena {}

#[global_allocator]
static ALLOCATOR: Arena = Arena {
    memory: std::cell::UnsafeCell::new([0; ARENA]),
    used: Cell::new(0),
    grown: Cell::new((0, 0)),
};

impl Arena {
    fn base(&self) -> usize {
        self.memory.get() as usize
    }

    /// Memory behind the arena, in pages of 64 KiB; consecutive growth is one piece.
    fn from_grown(&self, layout: Layout) -> *mut u8 {
        const PAGE: usize = 64 << 10;
        let (start, end) = self.grown.get();
        let at = start.next_multiple_of(layout.align());
        if let Some(next) = at.checked_add(layout.size()) {
            if next <= end {
                self.grown.set((next, end));
                return at as *mut u8;
            }
        }
        let pages = (layout.size() + layout.align()).div_ceil(PAGE).max(16);
        let old = core::arch::wasm32::memory_grow::<0>(pages);
        if old == usize::MAX {
            return core::ptr::null_mut();
        }
        let fresh = old * PAGE;
        let start = if fresh == end { start } else { fresh };
        let at = start.next_multiple_of(layout.align());
        self.grown.set((at + layout.size(), fresh + pages * PAGE));
        at as *mut u8
    }
}

// SAFETY: each block lies between the previously allocated blocks and the end of the arena or of the grown memory, has the
// requested alignment, and is never allocated again.
unsafe impl GlobalAlloc for Arena {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let at = (self.base() + self.used.get()).next_multiple_of(layout.align()) - self.base();
        match at.checked_add(layout.size()) {
            Some(end) if end <= ARENA => {
                self.used.set(end);
                (self.base() + at) as *mut u8
            }
            _ => self.from_grown(layout),
        }
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let at = (block as usize).wrapping_sub(self.base());
        // The last block grows in place.
        if at.wrapping_add(layout.size()) == self.used.get() && at.saturating_add(size) <= ARENA {
            self.used.set(at + size);
            return block;
        }
        if size <= layout.size() {
            return block;
        }
        // SAFETY: the layout is that of the old block with a larger size, which the caller guarantees.
        let new = unsafe { self.alloc(Layout::from_size_align_unchecked(size, layout.align())) };
        if !new.is_null() {
            // SAFETY: the new block is larger and lies apart from the old one.
            unsafe { core::ptr::copy_nonoverlapping(block, new, layout.size()) };
        }
        new
    }
}
