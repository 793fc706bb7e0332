//! Type checks of rules: a rule that reads an undeclared field, calls an unknown function or is not a condition does not compile.
//!
//! Types that the schema does not define are checked when the rule is evaluated.

use std::fmt;

use cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, SelectExpr, operators,
};

use super::{
    environment::{NAMESPACES, is_function},
    escaping::is_reserved,
    values::is_declared,
};
use crate::{node::Node, rules::Reads, value_type::ValueType};

/// The type of an expression.
#[derive(Clone, Debug)]
pub(super) enum Type<'n> {
    /// An unknown type, which is checked when the rule is evaluated.
    Any,
    /// A condition.
    Bool,
    String,
    /// Any other type without fields.
    Other(&'static str),
    /// A list, a map or an object of the schema; `whole` if it also has apiVersion, kind and metadata.
    Of {
        node: &'n Node,
        whole: bool,
    },
    /// The metadata of an object.
    Metadata,
    /// A value that may be absent.
    Optional(Box<Type<'n>>),
}

impl fmt::Display for Type<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("dyn"),
            Self::Bool => f.write_str("bool"),
            Self::String => f.write_str("string"),
            Self::Other(name) => f.write_str(name),
            Self::Of { node, .. } => f.write_str(node.kind.name()),
            Self::Metadata => f.write_str("object"),
            Self::Optional(inner) => write!(f, "optional({inner})"),
        }
    }
}

/// The variables of an expression, with their types.
#[derive(Clone)]
pub(super) struct Variables<'n> {
    this: Type<'n>,
    old: Type<'n>,
    locals: Vec<(String, Type<'n>)>,
}

/// The names of types, for comparisons with `type(x)`.
const TYPE_NAMES: [&str; 10] = [
    "bool",
    "bytes",
    "double",
    "int",
    "list",
    "map",
    "null_type",
    "string",
    "type",
    "uint",
];

impl<'n> Variables<'n> {
    /// Returns the variables of a rule of `node`.
    pub(super) fn new(node: &'n Node, whole: bool, optional_old: bool) -> Self {
        let this = of(node, whole);
        let old = match optional_old {
            true => Type::Optional(Box::new(this.clone())),
            false => this.clone(),
        };
        Self {
            this,
            old,
            locals: Vec::new(),
        }
    }

    /// Returns the type of an expression, or what is wrong with it, and adds the fields of `self` that it reads.
    pub(super) fn type_of(&self, expr: &IdedExpr, reads: &mut Reads) -> Result<Type<'n>, String> {
        match &expr.expr {
            Expr::Unspecified => Ok(Type::Any),
            Expr::Literal(literal) => Ok(literal_type(literal)),
            Expr::Ident(name) => self.ident(name, reads),
            Expr::Select(select) => self.select(select, reads),
            Expr::Call(call) => self.call(call, reads),
            Expr::Comprehension(comprehension) => self.comprehension(comprehension, reads),
            Expr::List(list) => self.all(&list.elements, Type::Other("list"), reads),
            Expr::Map(map) => {
                for entry in &map.entries {
                    if let EntryExpr::MapEntry(entry) = &entry.expr {
                        self.type_of(&entry.key, reads)?;
                        self.type_of(&entry.value, reads)?;
                    }
                }
                Ok(Type::Other("map"))
            }
            Expr::Struct(structure) => Err(format!("unknown type {}", structure.type_name)),
        }
    }

    fn all(
        &self,
        exprs: &[IdedExpr],
        found: Type<'n>,
        reads: &mut Reads,
    ) -> Result<Type<'n>, String> {
        for expr in exprs {
            self.type_of(expr, reads)?;
        }
        Ok(found)
    }

    fn ident(&self, name: &str, reads: &mut Reads) -> Result<Type<'n>, String> {
        if let Some((_, found)) = self.locals.iter().rev().find(|(local, _)| local == name) {
            return Ok(found.clone());
        }
        match name {
            "self" => {
                reads.read_all();
                Ok(self.this.clone())
            }
            "oldSelf" => {
                reads.read_all();
                Ok(self.old.clone())
            }
            name if TYPE_NAMES.contains(&name) => Ok(Type::Other("type")),
            name => Err(format!("undeclared reference to {name:?}")),
        }
    }

    /// Returns the type of the operand of a field selection. If that is `self`, only the field is read.
    fn operand(&self, expr: &IdedExpr, field: &str, reads: &mut Reads) -> Result<Type<'n>, String> {
        match &expr.expr {
            Expr::Ident(name) if self.locals.iter().all(|(local, _)| local != name) => {
                let found = match name.as_str() {
                    "self" => self.this.clone(),
                    "oldSelf" => self.old.clone(),
                    _ => return self.type_of(expr, reads),
                };
                reads.add(field);
                Ok(found)
            }
            _ => self.type_of(expr, reads),
        }
    }

    fn select(&self, select: &SelectExpr, reads: &mut Reads) -> Result<Type<'n>, String> {
        let operand = self.operand(&select.operand, &select.field, reads)?;
        let found = field_type(&operand, &select.field)?;
        Ok(if select.test { Type::Bool } else { found })
    }

    fn call(&self, call: &CallExpr, reads: &mut Reads) -> Result<Type<'n>, String> {
        if let Some(found) = self.access(call, reads)? {
            return Ok(found);
        }
        let target = match &call.target {
            Some(target) if is_namespace(target) => None,
            Some(target) => Some(self.type_of(target, reads)?),
            None => None,
        };
        let mut args = Vec::new();
        for arg in &call.args {
            args.push(self.type_of(arg, reads)?);
        }
        let name = call.func_name.as_str();
        match name {
            operators::CONDITIONAL => Ok(args.into_iter().nth(1).unwrap_or(Type::Any)),
            operators::ADD => Ok(match args.as_slice() {
                [Type::String, _] | [_, Type::String] => Type::String,
                _ => Type::Any,
            }),
            name if is_condition(name) => Ok(Type::Bool),
            name if name.starts_with(['_', '-', '!']) => Ok(Type::Any),
            name if !is_function(name) => Err(format!("undeclared reference to function {name:?}")),
            "size" | "int" | "indexOf" | "lastIndexOf" => Ok(Type::Other("int")),
            "double" | "uint" | "bytes" | "duration" | "timestamp" | "type" | "split" => {
                Ok(Type::Other("value"))
            }
            "of" | "ofNonZeroValue" => Ok(Type::Optional(Box::new(
                args.into_iter().next().unwrap_or(Type::Any),
            ))),
            "value" | "orValue" => Ok(match target {
                Some(Type::Optional(inner)) => *inner,
                _ => Type::Any,
            }),
            "string" | "lowerAscii" | "upperAscii" | "trim" | "replace" | "substring" | "join"
            | "charAt" | "format" | "quote" => Ok(Type::String),
            _ => Ok(Type::Any),
        }
    }

    /// `a[b]` and `a.?b`.
    fn access(&self, call: &CallExpr, reads: &mut Reads) -> Result<Option<Type<'n>>, String> {
        let [operand, key] = call.args.as_slice() else {
            return Ok(None);
        };
        match call.func_name.as_str() {
            operators::INDEX | operators::OPT_INDEX => {
                let operand = self.type_of(operand, reads)?;
                self.type_of(key, reads)?;
                let (optional, operand) = unwrapped(operand);
                let found = item_type(&operand);
                let optional = optional || call.func_name == operators::OPT_INDEX;
                Ok(Some(wrapped(optional, found)))
            }
            operators::OPT_SELECT => {
                let Expr::Literal(LiteralValue::String(field)) = &key.expr else {
                    return Ok(Some(Type::Any));
                };
                let operand = self.operand(operand, field.inner(), reads)?;
                let (_, operand) = unwrapped(operand);
                let found = field_type(&operand, field.inner())?;
                Ok(Some(wrapped(true, found)))
            }
            _ => Ok(None),
        }
    }

    fn comprehension(
        &self,
        comprehension: &ComprehensionExpr,
        reads: &mut Reads,
    ) -> Result<Type<'n>, String> {
        let range = self.type_of(&comprehension.iter_range, reads)?;
        if let Type::Bool | Type::String | Type::Metadata = range {
            return Err(format!("a value of type {range} cannot be iterated"));
        }
        let start = self.type_of(&comprehension.accu_init, reads)?;
        let item = match &range {
            Type::Of { node, .. } if node.kind == ValueType::Array => item_type(&range),
            Type::Of { node, .. } if is_declared(node, false) => {
                return Err("the fields of an object cannot be iterated".to_owned());
            }
            Type::Of { .. } => Type::String,
            _ => Type::Any,
        };
        let mut inner = self.clone();
        let start = if matches!(start, Type::Bool) {
            Type::Bool
        } else {
            Type::Any
        };
        inner
            .locals
            .push((comprehension.accu_var.clone(), start.clone()));
        let result = inner.type_of(&comprehension.result, reads)?;
        inner.locals.push((comprehension.iter_var.clone(), item));
        if let Some(second) = &comprehension.iter_var2 {
            inner.locals.push((second.clone(), Type::Any));
        }
        inner.type_of(&comprehension.loop_cond, reads)?;
        inner.type_of(&comprehension.loop_step, reads)?;
        Ok(result)
    }
}

fn of(node: &Node, whole: bool) -> Type<'_> {
    match node.kind {
        ValueType::Boolean => Type::Bool,
        ValueType::String => match node
            .checks
            .format
            .as_ref()
            .map(|format| format.name.as_str())
        {
            Some("byte" | "date" | "date-time" | "duration") => Type::Other("value"),
            _ => Type::String,
        },
        ValueType::Integer => Type::Other("int"),
        ValueType::Number => Type::Other("double"),
        ValueType::IntOrString | ValueType::Any => Type::Any,
        ValueType::Object | ValueType::Array => Type::Of {
            node,
            whole: whole || node.embedded,
        },
    }
}

fn field_type<'n>(operand: &Type<'n>, field: &str) -> Result<Type<'n>, String> {
    let undefined = || Err(format!("undefined field {field:?}"));
    match operand {
        Type::Any => Ok(Type::Any),
        Type::Optional(inner) => Ok(wrapped(true, field_type(inner, field)?)),
        Type::Metadata if matches!(field, "name" | "generateName") => Ok(Type::String),
        Type::Metadata => undefined(),
        Type::Of { node, whole } => match (field, node.map_values()) {
            ("metadata", _) if *whole => Ok(Type::Metadata),
            ("apiVersion" | "kind", _) if *whole => Ok(Type::String),
            (_, Some(values)) => Ok(of(values, false)),
            _ => {
                let property = node.properties.iter().find(|(name, property)| {
                    property.cel_name.as_deref() == Some(field)
                        || (is_reserved(field) && *name == field)
                });
                match property {
                    Some((_, property)) if property.node.in_cel => Ok(of(&property.node, false)),
                    _ => undefined(),
                }
            }
        },
        other => Err(format!("a value of type {other} has no field {field:?}")),
    }
}

fn item_type<'n>(operand: &Type<'n>) -> Type<'n> {
    match operand {
        Type::Of { node, .. } => match (&node.items, node.map_values()) {
            (Some(items), _) => of(items, false),
            (None, Some(values)) => of(values, false),
            (None, None) => Type::Any,
        },
        _ => Type::Any,
    }
}

fn unwrapped(found: Type<'_>) -> (bool, Type<'_>) {
    match found {
        Type::Optional(inner) => (true, *inner),
        other => (false, other),
    }
}

fn wrapped(optional: bool, found: Type<'_>) -> Type<'_> {
    match (optional, found) {
        (true, Type::Optional(inner)) => Type::Optional(inner),
        (true, found) => Type::Optional(Box::new(found)),
        (false, found) => found,
    }
}

fn is_namespace(target: &IdedExpr) -> bool {
    matches!(&target.expr, Expr::Ident(name) if NAMESPACES.contains(&name.as_str()))
}

fn is_condition(name: &str) -> bool {
    matches!(
        name,
        operators::EQUALS
            | operators::NOT_EQUALS
            | operators::LESS
            | operators::LESS_EQUALS
            | operators::GREATER
            | operators::GREATER_EQUALS
            | operators::LOGICAL_AND
            | operators::LOGICAL_OR
            | operators::LOGICAL_NOT
            | operators::IN
            | operators::NOT_STRICTLY_FALSE
            | "matches"
            | "startsWith"
            | "endsWith"
            | "contains"
            | "hasValue"
            | "bool"
    )
}

fn literal_type<'n>(literal: &LiteralValue) -> Type<'n> {
    match literal {
        LiteralValue::Boolean(_) => Type::Bool,
        LiteralValue::String(_) => Type::String,
        LiteralValue::Int(_) => Type::Other("int"),
        LiteralValue::UInt(_) => Type::Other("uint"),
        LiteralValue::Double(_) => Type::Other("double"),
        LiteralValue::Bytes(_) => Type::Other("bytes"),
        LiteralValue::Null => Type::Other("null"),
    }
}
