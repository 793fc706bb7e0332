//! When two claims overlap, and when one covers the other.

use super::path::{ClaimPath, ClaimScope, KeyPattern, ObjectPattern, PodSetPattern};
use crate::record::{Accelerators, DEVICE_OF_RESOURCE, Field, NODE_CONTAINER};

impl KeyPattern {
    /// Whether some key matches both. A variable can be any key; the set of keys overlaps only itself.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Set, Self::Set) => true,
            (Self::Set, _) | (_, Self::Set) => false,
            (Self::Any | Self::Variable(_) | Self::Base, _)
            | (_, Self::Any | Self::Variable(_) | Self::Base) => true,
            (Self::Objects(a), Self::Objects(b)) => a.overlaps(b),
            (Self::Objects(objects), Self::Prefix(prefix))
            | (Self::Prefix(prefix), Self::Objects(objects)) => objects.kind_begins_with(prefix),
            // A literal key of these fields that is not an object pattern matches nothing.
            (Self::Objects(_), Self::Literal(_)) | (Self::Literal(_), Self::Objects(_)) => false,
            (Self::Literal(a), Self::Literal(b)) => a == b,
            (Self::Literal(key), Self::Prefix(prefix))
            | (Self::Prefix(prefix), Self::Literal(key)) => key.starts_with(&**prefix),
            (Self::Prefix(a), Self::Prefix(b)) => a.starts_with(&**b) || b.starts_with(&**a),
        }
    }

    /// Whether this pattern matches every key that `other` matches.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Set, Self::Set) => true,
            (Self::Set, _) | (_, Self::Set) => false,
            (Self::Any, _) | (Self::Base, Self::Base) => true,
            (Self::Variable(a), Self::Variable(b)) => a == b,
            (Self::Literal(a), Self::Literal(b)) => a == b,
            (Self::Objects(a), Self::Objects(b)) => a.covers(b),
            (Self::Prefix(prefix), Self::Objects(objects)) => objects.kind_begins_with(prefix),
            (Self::Prefix(prefix), Self::Literal(text) | Self::Prefix(text)) => {
                text.starts_with(&**prefix)
            }
            _ => false,
        }
    }

    /// Whether the pattern matches a key; a variable is compared by `value`. [`Self::Base`] matches any name, because the caller knows
    /// which containers plugins added. Objects are compared by `matches_objects`.
    #[must_use]
    pub fn matches(&self, key: &str, value: Option<&str>) -> bool {
        match self {
            Self::Any | Self::Base => true,
            Self::Set | Self::Objects(_) => false,
            Self::Literal(text) => **text == *key,
            Self::Prefix(prefix) => key.starts_with(&**prefix),
            Self::Variable(_) => value == Some(key),
        }
    }

    /// Whether the pattern matches all of these objects; a variable is compared by `value`.
    pub(super) fn matches_objects(&self, asked: &ObjectPattern, value: Option<&str>) -> bool {
        match self {
            Self::Any => true,
            Self::Objects(objects) => objects.covers(asked),
            Self::Prefix(prefix) => asked.kind_begins_with(prefix),
            Self::Variable(_) => value.and_then(ObjectPattern::of_literal).as_ref() == Some(asked),
            Self::Set | Self::Literal(_) | Self::Base => false,
        }
    }
}

impl KeyPattern {
    /// The intersection of two keys that overlap. A variable is kept as it is, because its value is not known.
    fn meet(&self, other: &Self) -> Self {
        let width = |key: &Self| match key {
            Self::Literal(_) | Self::Set => (0, 0),
            Self::Objects(objects) => (1, objects.width()),
            Self::Prefix(prefix) => (2, usize::MAX - prefix.len()),
            Self::Variable(_) => (3, 0),
            Self::Base => (4, 0),
            Self::Any => (5, 0),
        };
        if width(other) < width(self) {
            other.clone()
        } else {
            self.clone()
        }
    }
}

impl PodSetPattern {
    /// The narrower of two patterns that overlap; a name is narrower than an ancestor or the nodes.
    fn meet(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Named(a), Self::Named(b)) => Self::Named(a.meet(b)),
            (Self::Named(KeyPattern::Literal(_)), _) => self.clone(),
            (_, Self::Named(KeyPattern::Literal(_))) | (Self::Named(_), _) => other.clone(),
            (Self::Ancestor(_) | Self::Nodes, _) => self.clone(),
        }
    }

    /// Whether some pod set may match both. A name, an ancestor and the nodes always overlap, because none determines another.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Named(a), Self::Named(b)) => a.overlaps(b),
            (Self::Ancestor(a), Self::Ancestor(b)) => a == b,
            _ => true,
        }
    }

    fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Named(KeyPattern::Any), _) => true,
            (Self::Named(a), Self::Named(b)) => a.covers(b),
            (Self::Ancestor(a), Self::Ancestor(b)) => a == b,
            (Self::Nodes, Self::Nodes) => true,
            _ => false,
        }
    }
}

impl ClaimScope {
    /// The intersection of two scopes that overlap.
    fn meet(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::PodSet(a), Self::PodSet(b)) => Self::PodSet(a.meet(b)),
            (
                Self::Container {
                    pod_sets: a,
                    list,
                    name: na,
                },
                Self::Container {
                    pod_sets: b,
                    name: nb,
                    ..
                },
            ) => Self::Container {
                pod_sets: a.meet(b),
                list: *list,
                name: na.meet(nb),
            },
            _ => self.clone(),
        }
    }

    fn overlaps(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Job, Self::Job) => true,
            (Self::PodSet(a), Self::PodSet(b)) => a.overlaps(b),
            (
                Self::Container {
                    pod_sets: a,
                    list: la,
                    name: na,
                },
                Self::Container {
                    pod_sets: b,
                    list: lb,
                    name: nb,
                },
            ) => la == lb && a.overlaps(b) && na.overlaps(nb),
            _ => false,
        }
    }

    fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Job, Self::Job) => true,
            (Self::PodSet(a), Self::PodSet(b)) => a.covers(b),
            (
                Self::Container {
                    pod_sets: a,
                    list: la,
                    name: na,
                },
                Self::Container {
                    pod_sets: b,
                    list: lb,
                    name: nb,
                },
            ) => la == lb && a.covers(b) && na.covers(nb),
            _ => false,
        }
    }
}

impl ClaimPath {
    /// Whether some entry of some record matches both.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.field == other.field
            && self.scope.overlaps(&other.scope)
            && match (&self.key, &other.key) {
                (Some(a), Some(b)) => a.overlaps(b),
                _ => true,
            }
    }

    /// The intersection of two paths that overlap, for messages: the narrowest path that contains it.
    #[must_use]
    pub fn meet(&self, other: &Self) -> Self {
        Self {
            scope: self.scope.meet(&other.scope),
            field: self.field,
            key: match (&self.key, &other.key) {
                (Some(a), Some(b)) => Some(a.meet(b)),
                (a, b) => a.clone().or_else(|| b.clone()),
            },
        }
    }

    /// Whether this path matches every entry that `other` matches.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        self.field == other.field
            && self.scope.covers(&other.scope)
            && match (&self.key, &other.key) {
                (Some(a), Some(b)) => a.covers(b),
                _ => true,
            }
    }

    /// Whether a read of this path may see the effect of a write to `write`: on the same entry, or on the set of keys.
    #[must_use]
    pub fn sees_write(&self, write: &Self) -> bool {
        self.overlaps(write)
            || (self.is_key_set() && self.field == write.field && self.scope.overlaps(&write.scope))
    }

    /// Whether `other` may match the container that `self` creates, or something in it.
    #[must_use]
    pub fn creates_around(&self, other: &Self) -> bool {
        if self.sees_write(other) || other.sees_write(self) {
            return true;
        }
        let (
            ClaimScope::PodSet(mine),
            ClaimScope::Container {
                pod_sets,
                list,
                name,
            },
        ) = (&self.scope, &other.scope)
        else {
            return false;
        };
        // `@base` never matches a container that a plugin adds.
        *name != KeyPattern::Base
            && *list == self.field
            && mine.overlaps(pod_sets)
            && self.key.as_ref().is_none_or(|key| key.overlaps(name))
    }

    /// Whether a read of this path depends on `made`, because devices are counted from the requests and limits of the node container. Only
    /// resources that are accelerators are counted.
    #[must_use]
    pub fn counts(&self, made: &Self, accelerators: &Accelerators) -> bool {
        let (Field::Devices, ClaimScope::PodSet(mine)) = (self.field, &self.scope) else {
            return false;
        };
        let is_node =
            |name: &KeyPattern| name.overlaps(&KeyPattern::Literal(NODE_CONTAINER.into()));
        match (&made.scope, made.field) {
            (ClaimScope::PodSet(theirs), Field::Containers) => {
                mine.overlaps(theirs) && made.key.as_ref().is_none_or(is_node)
            }
            (
                ClaimScope::Container {
                    pod_sets,
                    list: Field::Containers,
                    name,
                },
                Field::Requests | Field::Limits,
            ) => {
                mine.overlaps(pod_sets)
                    && is_node(name)
                    && accelerators.counted().any(|resource| {
                        let overlaps = |key: &Option<KeyPattern>, prefix: &str| {
                            let resource = KeyPattern::of_text(&[prefix, resource].concat());
                            key.as_ref().is_none_or(|key| key.overlaps(&resource))
                        };
                        overlaps(&made.key, "") && overlaps(&self.key, DEVICE_OF_RESOURCE)
                    })
            }
            _ => false,
        }
    }

    /// Whether both concern the set of names in one list of containers: one the set or a container, the other a container.
    #[must_use]
    pub fn is_of_list(&self, other: &Self) -> bool {
        self.field == other.field
            && self.field.holds_containers()
            && self.scope.overlaps(&other.scope)
    }

    fn is_key_set(&self) -> bool {
        self.key == Some(KeyPattern::Set)
    }
}
