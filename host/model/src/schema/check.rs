//! Checks a value by its schema. Each pair of a value and a schema is a step, and the steps are counted.

use std::{cmp::Ordering, collections::BTreeSet};

use serde_json::{Map, Number, Value};

use super::{
    limits::{Budget, Exhausted, MAX_PROBLEMS, STEPS_OF_A_PATTERN, STEPS_OF_A_PROBLEM, of_text},
    node::{Id, ListRules, Node, Nodes, NumberRules, ObjectRules, TextRules},
    number,
    problem::{Fault, Problem, short, short_text},
    read::escaped,
    values,
};
use crate::text::nearest;

/// The maximum length of an unknown key for which a similar one is searched, in bytes.
const MAX_MISSPELLED: usize = 64;

/// A place in a value; its text is made only for a problem.
#[derive(Clone, Copy)]
pub(super) enum At<'a> {
    Root,
    Key(&'a At<'a>, &'a str),
    Index(&'a At<'a>, usize),
}

impl At<'_> {
    fn pointer(&self) -> String {
        match self {
            Self::Root => String::new(),
            Self::Key(above, key) => format!("{}/{}", above.pointer(), escaped(key)),
            Self::Index(above, index) => format!("{}/{index}", above.pointer()),
        }
    }
}

/// One walk of a value.
pub(super) struct Check<'s, 'b> {
    pub(super) nodes: &'s Nodes,
    pub(super) budget: &'b mut Budget,
}

/// What a walk finds: the first problems, of which there may be no more than so many.
type Found<'s> = Vec<Problem<'s>>;

impl<'s> Check<'s, '_> {
    /// Adds what is wrong with a value. `description` is the nearest one above.
    pub(super) fn value(
        &mut self,
        id: Id,
        value: &Value,
        at: &At<'_>,
        description: Option<&'s str>,
        found: &mut Found<'s>,
    ) -> Result<(), Exhausted> {
        self.budget.steps(1)?;
        let Some(node) = self.nodes.get(id) else {
            return Ok(());
        };
        if found.len() >= MAX_PROBLEMS {
            return Ok(());
        }
        let mut place = Place {
            value,
            at,
            description: node.description.as_deref().or(description),
            found,
        };
        if node.never {
            return self.report(&mut place, Fault::NotAllowed);
        }
        self.itself(node, &mut place)?;
        let (description, found) = (place.description, place.found);
        match value {
            Value::Array(items) => self.items(&node.list, items, at, description, found)?,
            Value::Object(object) => self.members(&node.object, object, at, description, found)?,
            _ => {}
        }
        for schema in node.reference.iter().chain(&node.all_of) {
            self.value(*schema, value, at, description, found)?;
        }
        self.branches(node, value, at, description, found)
    }

    /// What is required of the value, apart from what is in it.
    fn itself(&mut self, node: &'s Node, place: &mut Place<'_, 's, '_>) -> Result<(), Exhausted> {
        let value = place.value;
        if let Some(types) = &node.types
            && !types.iter().any(|kind| kind.has(value))
        {
            self.report(place, Fault::Type(types))?;
        }
        for choices in &node.choices {
            if !self.is_one_of(choices, value)? {
                self.report(place, Fault::Choice(choices))?;
            }
        }
        match value {
            Value::Number(number) => self.number(&node.number, number, place)?,
            Value::String(text) => self.text(&node.text, text, place)?,
            Value::Array(items) => self.list(&node.list, items, place)?,
            Value::Object(object) => self.object(&node.object, object, place)?,
            _ => {}
        }
        Ok(())
    }

    fn is_one_of(&mut self, choices: &[Value], value: &Value) -> Result<bool, Exhausted> {
        for choice in choices {
            if values::equal(choice, value, self.budget)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn number(
        &mut self,
        rules: &'s NumberRules,
        value: &Number,
        place: &mut Place<'_, 's, '_>,
    ) -> Result<(), Exhausted> {
        use Ordering::{Equal, Greater, Less};
        let bounds = [
            (&rules.minimum, &[Less][..], Fault::Below as fn(_) -> _),
            (&rules.maximum, &[Greater], Fault::Above),
            (&rules.above, &[Less, Equal], Fault::NotAbove),
            (&rules.below, &[Greater, Equal], Fault::NotBelow),
        ];
        for (bound, wrong, fault) in bounds {
            if let Some(bound) = bound
                && wrong.contains(&number::compare(value, bound))
            {
                self.report(place, fault(bound))?;
            }
        }
        if let Some(factor) = rules.multiple_of
            && !number::is_multiple(value, factor)
        {
            self.report(place, Fault::NotAMultiple(factor))?;
        }
        Ok(())
    }

    fn text(
        &mut self,
        rules: &'s TextRules,
        text: &str,
        place: &mut Place<'_, 's, '_>,
    ) -> Result<(), Exhausted> {
        self.budget.steps(of_text(text))?;
        if rules.min.is_some() || rules.max.is_some() {
            let length = text.chars().count() as u64;
            if let Some(min) = rules.min.filter(|min| length < *min) {
                self.report(place, Fault::Shorter(min))?;
            }
            if let Some(max) = rules.max.filter(|max| length > *max) {
                self.report(place, Fault::Longer(max))?;
                return Ok(());
            }
        }
        if let Some(pattern) = &rules.pattern {
            self.budget
                .steps((text.len() as u64 + 1) * STEPS_OF_A_PATTERN)?;
            if !pattern.is_match(text) {
                self.report(place, Fault::Pattern(pattern.as_str()))?;
            }
        }
        Ok(())
    }

    fn list(
        &mut self,
        rules: &'s ListRules,
        items: &[Value],
        place: &mut Place<'_, 's, '_>,
    ) -> Result<(), Exhausted> {
        let size = items.len() as u64;
        if let Some(min) = rules.min.filter(|min| size < *min) {
            self.report(place, Fault::FewerItems(min))?;
        }
        if let Some(max) = rules.max.filter(|max| size > *max) {
            self.report(place, Fault::MoreItems(max))?;
        }
        if rules.unique {
            let mut seen = BTreeSet::new();
            for item in items {
                if !seen.insert(values::identity(item, self.budget)?) {
                    self.report(place, Fault::Repeated(short(item)))?;
                    break;
                }
            }
        }
        Ok(())
    }

    fn object(
        &mut self,
        rules: &'s ObjectRules,
        object: &Map<String, Value>,
        place: &mut Place<'_, 's, '_>,
    ) -> Result<(), Exhausted> {
        let size = object.len() as u64;
        if let Some(min) = rules.min.filter(|min| size < *min) {
            self.report(place, Fault::FewerKeys(min))?;
        }
        if let Some(max) = rules.max.filter(|max| size > *max) {
            self.report(place, Fault::MoreKeys(max))?;
        }
        for name in &rules.required {
            self.budget.steps(1)?;
            if !object.contains_key(name) {
                self.report(place, Fault::Missing(name))?;
            }
        }
        let never = |id: Id| self.nodes.get(id).is_some_and(|node| node.never);
        if rules.others.is_some_and(never) {
            let mut unknown = object
                .keys()
                .filter(|key| !rules.properties.contains_key(*key));
            let first = unknown
                .by_ref()
                .take(Fault::KEYS)
                .map(|key| unknown_key(key, rules));
            let first: Vec<_> = first.collect();
            if !first.is_empty() {
                let more = unknown.count();
                self.report(place, Fault::Unknown(first, more))?;
            }
        }
        self.budget.steps(size)
    }

    fn items(
        &mut self,
        rules: &'s ListRules,
        items: &[Value],
        at: &At<'_>,
        description: Option<&'s str>,
        found: &mut Found<'s>,
    ) -> Result<(), Exhausted> {
        if let Some(schema) = rules.items {
            for (index, item) in items.iter().enumerate() {
                self.value(schema, item, &At::Index(at, index), description, found)?;
            }
        }
        Ok(())
    }

    fn members(
        &mut self,
        rules: &'s ObjectRules,
        object: &Map<String, Value>,
        at: &At<'_>,
        description: Option<&'s str>,
        found: &mut Found<'s>,
    ) -> Result<(), Exhausted> {
        // Keys that nothing allows are reported at the object, all at once.
        let others = rules.others;
        let others = others.filter(|id| self.nodes.get(*id).is_some_and(|node| !node.never));
        for (key, value) in object {
            let schema = rules.properties.get(key).copied().or(others);
            if let Some(schema) = schema {
                self.value(schema, value, &At::Key(at, key), description, found)?;
            }
        }
        Ok(())
    }

    /// `anyOf`, `oneOf` and `not`.
    fn branches(
        &mut self,
        node: &'s Node,
        value: &Value,
        at: &At<'_>,
        description: Option<&'s str>,
        found: &mut Found<'s>,
    ) -> Result<(), Exhausted> {
        let mut faults = Vec::new();
        if !node.any_of.is_empty() {
            let (fits, problems) = self.each(&node.any_of, 1, value, at, description)?;
            if fits == 0 {
                faults.push(Fault::NoBranch(problems));
            }
        }
        if !node.one_of.is_empty() {
            let (fits, problems) = self.each(&node.one_of, 2, value, at, description)?;
            match fits {
                0 => faults.push(Fault::NoBranch(problems)),
                1 => {}
                _ => faults.push(Fault::SeveralBranches),
            }
        }
        if let Some(not) = node.not {
            let (fits, _) = self.each(&[not], 1, value, at, description)?;
            if fits > 0 {
                faults.push(Fault::NotAllowed);
            }
        }
        let mut place = Place {
            value,
            at,
            description,
            found,
        };
        for fault in faults {
            self.report(&mut place, fault)?;
        }
        Ok(())
    }

    /// Notes a problem. It costs as what it holds: most of the problems within branches are dropped again.
    fn report(&mut self, place: &mut Place<'_, 's, '_>, fault: Fault<'s>) -> Result<(), Exhausted> {
        if place.found.len() >= MAX_PROBLEMS {
            return Ok(());
        }
        let pointer = place.at.pointer();
        self.budget.steps(STEPS_OF_A_PROBLEM + of_text(&pointer))?;
        place.found.push(Problem {
            pointer,
            shown: short(place.value),
            fault,
            description: place.description,
        });
        Ok(())
    }

    /// How many of the schemas a value fits, and what is wrong by each of the others. It looks for no more than so many.
    fn each(
        &mut self,
        schemas: &[Id],
        most: usize,
        value: &Value,
        at: &At<'_>,
        description: Option<&'s str>,
    ) -> Result<(usize, Vec<Found<'s>>), Exhausted> {
        let (mut fits, mut problems) = (0, Vec::new());
        for schema in schemas {
            let mut found = Vec::new();
            self.value(*schema, value, at, description, &mut found)?;
            if found.is_empty() {
                fits += 1;
                if fits == most {
                    break;
                }
            } else {
                problems.push(found);
            }
        }
        Ok((fits, problems))
    }
}

/// A value under a schema, where problems are reported.
struct Place<'a, 's, 'f> {
    value: &'a Value,
    at: &'a At<'a>,
    description: Option<&'s str>,
    found: &'f mut Found<'s>,
}

/// Quotes an unknown key, with the most similar known one.
fn unknown_key(key: &str, rules: &ObjectRules) -> String {
    let known = rules.properties.keys().map(String::as_str);
    let near = match key.len() {
        0..=MAX_MISSPELLED => nearest(key, known),
        _ => None,
    };
    match near {
        Some(near) => format!("{} (did you mean `{near}`?)", short_text(key)),
        None => short_text(key),
    }
}
