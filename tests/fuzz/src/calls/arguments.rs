//! The arguments of a call, taken from the input.

use std::collections::BTreeMap;

use arbitrary::Unstructured;

use super::words::WORDS;

/// The most texts that are kept of those that the host returned.
const MOST_KEPT: usize = 16;

/// The input that has not been used yet, and what the host has returned.
pub(super) struct Arguments<'b> {
    input: Unstructured<'b>,
    handles: BTreeMap<&'static str, Vec<u32>>,
    texts: Vec<String>,
}

/// A type of arguments.
pub(super) trait Taken {
    /// Takes one from the input.
    fn taken(args: &mut Arguments<'_>) -> Self;
}

/// A type of results.
pub(super) trait Returned {
    /// Keeps the handles and texts in it for later arguments.
    fn keep(&self, _: &mut Arguments<'_>) {}
}

impl<'b> Arguments<'b> {
    pub(super) const fn new(input: Unstructured<'b>) -> Self {
        Self {
            input,
            handles: BTreeMap::new(),
            texts: Vec::new(),
        }
    }

    /// Forgets the handles, which end with their call.
    pub(super) fn next_call(&mut self) {
        self.handles.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.input.is_empty()
    }

    pub(super) fn take<T: Taken>(&mut self) -> T {
        T::taken(self)
    }

    /// A byte; 0 at the end of the input.
    pub(super) fn byte(&mut self) -> u8 {
        self.input.arbitrary().unwrap_or_default()
    }

    /// A handle: mostly one that the call has returned, otherwise any number, which a native plugin could make up.
    pub(super) fn handle(&mut self, of: &'static str) -> u32 {
        let byte = self.byte();
        let known = self.handles.get(of).map(Vec::as_slice).unwrap_or_default();
        match (byte, known) {
            (0xf8..=0xff, _) => self.input.arbitrary().unwrap_or_default(),
            // The first of those of which there is only one.
            (_, []) => 0,
            (byte, known) => known[usize::from(byte) % known.len()],
        }
    }

    pub(super) fn keep_handle(&mut self, of: &'static str, handle: u32) {
        self.handles.entry(of).or_default().push(handle);
    }

    fn text(&mut self) -> String {
        let word = |byte: u8| WORDS[usize::from(byte) % WORDS.len()];
        match self.byte() {
            0xff => {
                let length = usize::from(self.byte());
                let bytes = self.input.bytes(length.min(self.input.len()));
                String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned()
            }
            0xfe => word(self.byte()).repeat(usize::from(self.byte()) + 1),
            0xfd => word(self.byte()).to_owned() + word(self.byte()),
            0xf8..=0xfc if !self.texts.is_empty() => {
                let at = usize::from(self.byte()) % self.texts.len();
                self.texts[at].clone()
            }
            byte => word(byte).to_owned(),
        }
    }
}

macro_rules! numbers {
    ($($ty:ty),+) => {$(
        impl Taken for $ty {
            fn taken(args: &mut Arguments<'_>) -> Self {
                // Most numbers that matter are small.
                match args.byte() {
                    0xf8..=0xff => args.input.arbitrary().unwrap_or_default(),
                    byte => <$ty>::from(byte),
                }
            }
        }
        impl Returned for $ty {}
    )+};
}

numbers!(u8, u16, u32, i64);

impl Taken for bool {
    fn taken(args: &mut Arguments<'_>) -> Self {
        args.byte() & 1 == 1
    }
}

impl Returned for bool {}

impl Taken for String {
    fn taken(args: &mut Arguments<'_>) -> Self {
        args.text()
    }
}

impl Returned for String {
    fn keep(&self, args: &mut Arguments<'_>) {
        if args.texts.len() < MOST_KEPT {
            args.texts.push(self.clone());
        }
    }
}

impl<T: Taken> Taken for Option<T> {
    fn taken(args: &mut Arguments<'_>) -> Self {
        (args.byte() & 1 == 1).then(|| args.take())
    }
}

impl<T: Returned> Returned for Option<T> {
    fn keep(&self, args: &mut Arguments<'_>) {
        self.iter().for_each(|value| value.keep(args));
    }
}

impl<T: Taken> Taken for Vec<T> {
    fn taken(args: &mut Arguments<'_>) -> Self {
        let length = args.byte() % 5;
        (0..length).map(|_| args.take()).collect()
    }
}

impl<T: Returned> Returned for Vec<T> {
    fn keep(&self, args: &mut Arguments<'_>) {
        self.iter().for_each(|value| value.keep(args));
    }
}
