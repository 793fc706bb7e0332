//! Lists of names in messages.

use std::fmt::Display;

/// Lists the first `most` names and the number of the others: `a, b, and 3 more`. Empty if there are no names.
pub fn listed<T: Display>(names: impl IntoIterator<Item = T>, most: usize) -> String {
    let mut names = names.into_iter();
    let first: Vec<_> = names
        .by_ref()
        .take(most)
        .map(|name| name.to_string())
        .collect();
    match names.count() {
        0 => first.join(", "),
        more => format!("{}, and {more} more", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_names_are_listed_and_the_others_counted() {
        let of = |count: usize| listed(["a", "b", "c"].iter().take(count), 2);
        assert_eq!(
            [of(0), of(1), of(2), of(3)],
            ["", "a", "a, b", "a, b, and 1 more"]
        );
    }
}
