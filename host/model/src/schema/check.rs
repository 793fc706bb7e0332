//! Validation of a configuration. Each pair of a value and a schema is a step, and the steps are counted.

use std::{cmp::Ordering, collections::BTreeSet};

use serde_json::{Map, Number, Value};
use trainyard_text::StackPath;

use super::{
    limits::{Budget, Exhausted, STEPS_OF_A_PATTERN, STEPS_OF_A_PROBLEM, of_text},
    node::{Id, ListRules, Node, Nodes, NumberRules, ObjectRules, TextRules},
    number,
    problem::{Problem, Violation, short},
    values,
};

/// One traversal of a value.
pub(super) struct Check<'s, 'b> {
    pub(super) nodes: &'s Nodes,
    pub(super) budget: &'b mut Budget,
}

/// The first problems that a traversal finds.
type Found<'s> = Vec<Problem<'s>>;

impl<'s> Check<'s, '_> {
    /// Adds the problems of a value. `description` is that of the nearest schema above.
    pub(super) fn value(
        &mut self,
        id: Id,
        value: &Value,
        at: &StackPath<'_>,
        description: Option<&'s str>,
        found: &mut Found<'s>,
    ) -> Result<(), Exhausted> {
        self.budget.steps(1)?;
        let Some(node) = self.nodes.get(id) else {
            return Ok(());
        };
        if found.len() >= self.budget.problems {
            return Ok(());
        }
        let mut instance = Instance {
            value,
            at,
            description: node.description.as_deref().or(description),
            found,
        };
        if node.never {
            return self.report(&mut instance, Violation::NotAllowed);
        }
        self.itself(node, &mut instance)?;
        let (description, found) = (instance.description, instance.found);
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

    /// Checks the value itself, without the values in it.
    fn itself(
        &mut self,
        node: &'s Node,
        instance: &mut Instance<'_, 's, '_>,
    ) -> Result<(), Exhausted> {
        let value = instance.value;
        if let Some(types) = &node.types
            && !types.iter().any(|kind| kind.has(value))
        {
            self.report(instance, Violation::Type(types))?;
        }
        for choices in &node.choices {
            if !self.is_one_of(choices, value)? {
                self.report(instance, Violation::Choice(choices))?;
            }
        }
        match value {
            Value::Number(number) => self.number(&node.number, number, instance)?,
            Value::String(text) => self.text(&node.text, text, instance)?,
            Value::Array(items) => self.list(&node.list, items, instance)?,
            Value::Object(object) => self.object(&node.object, object, instance)?,
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
        instance: &mut Instance<'_, 's, '_>,
    ) -> Result<(), Exhausted> {
        use Ordering::{Equal, Greater, Less};
        let bounds = [
            (&rules.minimum, &[Less][..], Violation::Below as fn(_) -> _),
            (&rules.maximum, &[Greater], Violation::Above),
            (&rules.above, &[Less, Equal], Violation::NotAbove),
            (&rules.below, &[Greater, Equal], Violation::NotBelow),
        ];
        for (bound, wrong, violation) in bounds {
            if let Some(bound) = bound
                && wrong.contains(&number::compare(value, bound))
            {
                self.report(instance, violation(bound))?;
            }
        }
        if let Some(factor) = rules.multiple_of
            && !number::is_multiple(value, factor)
        {
            self.report(instance, Violation::NotAMultiple(factor))?;
        }
        Ok(())
    }

    fn text(
        &mut self,
        rules: &'s TextRules,
        text: &str,
        instance: &mut Instance<'_, 's, '_>,
    ) -> Result<(), Exhausted> {
        self.budget.steps(of_text(text))?;
        if rules.min.is_some() || rules.max.is_some() {
            let length = text.chars().count() as u64;
            if let Some(min) = rules.min.filter(|min| length < *min) {
                self.report(instance, Violation::Shorter(min))?;
            }
            if let Some(max) = rules.max.filter(|max| length > *max) {
                self.report(instance, Violation::Longer(max))?;
                return Ok(());
            }
        }
        if let Some(pattern) = &rules.pattern {
            self.budget
                .steps((text.len() as u64 + 1) * STEPS_OF_A_PATTERN)?;
            if !pattern.is_match(text) {
                self.report(instance, Violation::Pattern(pattern.as_str()))?;
            }
        }
        Ok(())
    }

    fn list(
        &mut self,
        rules: &'s ListRules,
        items: &[Value],
        instance: &mut Instance<'_, 's, '_>,
    ) -> Result<(), Exhausted> {
        let size = items.len() as u64;
        if let Some(min) = rules.min.filter(|min| size < *min) {
            self.report(instance, Violation::FewerItems(min))?;
        }
        if let Some(max) = rules.max.filter(|max| size > *max) {
            self.report(instance, Violation::MoreItems(max))?;
        }
        if rules.unique {
            let mut seen = BTreeSet::new();
            for item in items {
                if !seen.insert(values::identity(item, self.budget)?) {
                    self.report(instance, Violation::Repeated(short(item)))?;
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
        instance: &mut Instance<'_, 's, '_>,
    ) -> Result<(), Exhausted> {
        let size = object.len() as u64;
        if let Some(min) = rules.min.filter(|min| size < *min) {
            self.report(instance, Violation::FewerKeys(min))?;
        }
        if let Some(max) = rules.max.filter(|max| size > *max) {
            self.report(instance, Violation::MoreKeys(max))?;
        }
        for name in &rules.required {
            self.budget.steps(1)?;
            if !object.contains_key(name) {
                self.report(instance, Violation::Missing(name))?;
            }
        }
        let never = |id: Id| self.nodes.get(id).is_some_and(|node| node.never);
        if rules.others.is_some_and(never) {
            let mut unknown = object
                .keys()
                .filter(|key| !rules.properties.contains_key(*key));
            let keys: Vec<_> = unknown.by_ref().take(self.budget.keys).cloned().collect();
            if !keys.is_empty() {
                let more = unknown.count();
                self.budget
                    .steps(keys.iter().map(|key| of_text(key)).sum())?;
                self.report(instance, Violation::Unknown { keys, more, rules })?;
            }
        }
        self.budget.steps(size)
    }

    fn items(
        &mut self,
        rules: &'s ListRules,
        items: &[Value],
        at: &StackPath<'_>,
        description: Option<&'s str>,
        found: &mut Found<'s>,
    ) -> Result<(), Exhausted> {
        if let Some(schema) = rules.items {
            for (index, item) in items.iter().enumerate() {
                self.value(schema, item, &at.index(index), description, found)?;
            }
        }
        Ok(())
    }

    fn members(
        &mut self,
        rules: &'s ObjectRules,
        object: &Map<String, Value>,
        at: &StackPath<'_>,
        description: Option<&'s str>,
        found: &mut Found<'s>,
    ) -> Result<(), Exhausted> {
        // Unknown keys are reported together, at the object.
        let others = rules.others;
        let others = others.filter(|id| self.nodes.get(*id).is_some_and(|node| !node.never));
        for (key, value) in object {
            let schema = rules.properties.get(key).copied().or(others);
            if let Some(schema) = schema {
                self.value(schema, value, &at.field(key), description, found)?;
            }
        }
        Ok(())
    }

    /// `anyOf`, `oneOf` and `not`.
    fn branches(
        &mut self,
        node: &'s Node,
        value: &Value,
        at: &StackPath<'_>,
        description: Option<&'s str>,
        found: &mut Found<'s>,
    ) -> Result<(), Exhausted> {
        let mut violations = Vec::new();
        if !node.any_of.is_empty() {
            let (fits, problems) = self.each(&node.any_of, 1, value, at, description)?;
            if fits == 0 {
                violations.push(Violation::NoBranch(problems));
            }
        }
        if !node.one_of.is_empty() {
            let (fits, problems) = self.each(&node.one_of, 2, value, at, description)?;
            match fits {
                0 => violations.push(Violation::NoBranch(problems)),
                1 => {}
                _ => violations.push(Violation::SeveralBranches),
            }
        }
        if let Some(not) = node.not {
            let (fits, _) = self.each(&[not], 1, value, at, description)?;
            if fits > 0 {
                violations.push(Violation::NotAllowed);
            }
        }
        let mut instance = Instance {
            value,
            at,
            description,
            found,
        };
        for violation in violations {
            self.report(&mut instance, violation)?;
        }
        Ok(())
    }

    /// Adds a problem, and charges for it, because most problems in branches are dropped later.
    fn report(
        &mut self,
        instance: &mut Instance<'_, 's, '_>,
        violation: Violation<'s>,
    ) -> Result<(), Exhausted> {
        if instance.found.len() >= self.budget.problems {
            return Ok(());
        }
        let field = instance.at.path();
        self.budget
            .steps(STEPS_OF_A_PROBLEM + of_text(&field.to_string()))?;
        instance.found.push(Problem {
            field,
            shown: short(instance.value),
            violation,
            description: instance.description,
        });
        Ok(())
    }

    /// Returns how many of the schemas the value matches, at most `most`, and the problems with each of the others.
    fn each(
        &mut self,
        schemas: &[Id],
        most: usize,
        value: &Value,
        at: &StackPath<'_>,
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

/// The value that is checked (JSON Schema's instance), with the list of problems.
struct Instance<'a, 's, 'f> {
    value: &'a Value,
    at: &'a StackPath<'a>,
    description: Option<&'s str>,
    found: &'f mut Found<'s>,
}
