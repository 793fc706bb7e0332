//! What an API server sends: lists are split into objects and watches into lines without regard to how the bytes arrive, and an object
//! that does not decode leaves the others whole.

use std::{
    borrow::Cow,
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::io::{AsyncRead, BufReader};
use serde_json::Value;
use tokio::time::Instant;
use trainyard_controller::{
    watch::WatchLines,
    wire::{Identity, Page, WatchLine, decode, without_managed_fields},
};

thread_local! {
    static RUNTIME: tokio::runtime::Runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
}

/// Bytes that arrive in parts of these lengths.
struct Parts {
    bytes: Vec<u8>,
    lengths: Vec<u8>,
    at: usize,
    part: usize,
}

impl AsyncRead for Parts {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let length = match self.lengths.len() {
            0 => usize::MAX,
            parts => usize::from(self.lengths[self.part % parts]) + 1,
        };
        let length = length.min(self.bytes.len() - self.at).min(buffer.len());
        buffer[..length].copy_from_slice(&self.bytes[self.at..self.at + length]);
        self.at += length;
        self.part += 1;
        Poll::Ready(Ok(length))
    }
}

/// Checks an answer: the lengths of the parts in which it arrives, after their number, and its bytes.
pub fn check(bytes: &[u8]) -> bool {
    let Some((count, rest)) = bytes.split_first() else {
        return false;
    };
    let (lengths, answer) = rest.split_at(usize::from(count % 16).min(rest.len()));
    check_lines(answer, lengths);
    let Ok(text) = std::str::from_utf8(answer) else {
        return false;
    };
    check_object(text);
    check_list(text)
}

/// The lines of a watch are the same if they arrive in parts.
fn check_lines(answer: &[u8], lengths: &[u8]) {
    let (whole, parts) = (lines(answer, &[]), lines(answer, lengths));
    assert_eq!(whole, parts);
    let (lines, is_complete) = whole;
    // Split by other code. What follows the last line break is not complete.
    let mut expected: Vec<&[u8]> = answer.split(|byte| *byte == b'\n').collect();
    let rest = expected.pop().unwrap_or_default();
    let expected: Vec<_> = expected
        .into_iter()
        .filter(|line| !line.trim_ascii().is_empty())
        .collect();
    let until = expected
        .iter()
        .position(|line| std::str::from_utf8(line).is_err());
    let expected = &expected[..until.unwrap_or(expected.len())];
    assert_eq!(lines.len(), expected.len());
    for (line, expected) in lines.iter().zip(expected) {
        assert_eq!(line.trim_end_matches('\n').as_bytes(), *expected);
        if let Ok(line) = WatchLine::split(line) {
            check_object(line.object());
        }
    }
    assert_eq!(is_complete, rest.is_empty() && until.is_none());
}

/// The lines of a watch, and whether it ended after the last of them.
fn lines(answer: &[u8], lengths: &[u8]) -> (Vec<String>, bool) {
    let parts = Parts {
        bytes: answer.to_vec(),
        lengths: lengths.to_vec(),
        at: 0,
        part: 0,
    };
    let read = async {
        let until = Instant::now() + Duration::from_secs(3600);
        let mut lines = WatchLines::new(BufReader::new(parts), until);
        let mut all = Vec::new();
        loop {
            match lines.next().await {
                Ok(Some(line)) => all.push(line),
                Ok(None) => return (all, true),
                Err(_) => return (all, false),
            }
        }
    };
    RUNTIME.with(|runtime| runtime.block_on(read))
}

/// Each object of a list has the text that a decoder of the whole list finds there, and another object that does not decode changes nothing.
fn check_list(text: &str) -> bool {
    let Ok(page) = Page::split(text) else {
        return false;
    };
    if let Ok(whole) = serde_json::from_str::<Value>(text) {
        let items = whole
            .get("items")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        let split: Vec<Value> = page
            .items
            .iter()
            .map(|item| serde_json::from_str(item).unwrap())
            .collect();
        assert_eq!(split, items, "{text}");
    }
    page.items.iter().for_each(|item| check_object(item));
    let bad = format!("{{\"a\":{}1{}}}", "[".repeat(200), "]".repeat(200));
    let items: Vec<_> = page.items.iter().copied().chain([&*bad]).collect();
    let longer = format!("{{\"items\":[{}]}}", items.join(","));
    assert_eq!(Page::split(&longer).unwrap().items, items);
    true
}

/// An object decodes to the same without its managed fields, and has the same name.
fn check_object(object: &str) {
    let identity = Identity::of(object);
    let cut = without_managed_fields(object);
    let decoded = decode::<Value>(object);
    if let Err(error) = &decoded {
        assert!(error.to_string().len() < 400, "{error}");
    }
    let (Ok(mut whole), Ok(mut without)) = (decoded, decode::<Value>(&cut)) else {
        return;
    };
    // A name that is there twice, which no API server sends, is not read, and decoded, only the last one is left.
    let decoded = Identity::of(&whole.to_string());
    if let Cow::Owned(cut) = &cut {
        assert_eq!(Identity::of(cut), decoded, "{object}");
    }
    assert!(identity.is_none() || identity == decoded, "{object}");
    for value in [&mut whole, &mut without] {
        if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.shift_remove("managedFields");
        }
    }
    assert_eq!(whole, without, "{object}");
}
