//! The claims per node that a TrainJob or its runtime requests, in addition to the claims of the pods: `spec.trainer.resourceClaimsPerNode`,
//! and equivalent annotations.

use trainyard_sdk::{
    Context, Document, Failure, NODE,
    names::{is_dns_label, is_dns_subdomain},
};

use crate::made::Policy;

/// The annotation with a list of claims as JSON: on a runtime, and on a TrainJob instead of the field, which typed clients drop.
const PER_NODE: &str = "trainyard.dev/resource-claims-per-node";
/// The annotation with the names of claims of the runtime that the TrainJob excludes, separated by commas.
const EXCLUDED: &str = "trainyard.dev/exclude-resource-claims";
/// The field of the TrainJob, as a pointer and as a path.
const FIELD: (&str, &str) = (
    "/trainer/resourceClaimsPerNode",
    "spec.trainer.resourceClaimsPerNode",
);
/// The most devices that the scheduler allocates for a claim (`AllocationResultsMaxSize` of resource.k8s.io/v1).
pub(crate) const MAX_DEVICES: u32 = 32;
/// The limits of the API server for the selectors of a request: their number, and the bytes of one.
const MAX_SELECTORS: usize = 32;
const MAX_CEL: usize = 10 << 10;
/// The members of an entry.
const MEMBERS: [&str; 7] = [
    "name",
    "resourceClaimName",
    "resourceClaimTemplateName",
    "deviceClassName",
    "count",
    "selectors",
    "containerNames",
];

/// One claim for the pods of each node.
#[derive(Debug)]
pub(crate) struct Wish {
    /// Its name in the pods.
    pub(crate) name: String,
    /// Its source.
    pub(crate) source: Source,
    /// The containers that use it.
    pub(crate) containers: Vec<String>,
    /// The path of the request.
    pub(crate) path: String,
}

/// The source of a claim.
#[derive(Debug)]
pub(crate) enum Source {
    /// An existing ResourceClaim.
    Claim(String),
    /// An existing ResourceClaimTemplate.
    Template(String),
    /// A ResourceClaimTemplate that is generated for this TrainJob.
    Made(Policy),
}

/// The requested claims, with all errors.
#[derive(Debug, Default)]
pub(crate) struct Wishes {
    /// The valid claims.
    pub(crate) list: Vec<Wish>,
    /// The errors of the others.
    pub(crate) problems: Vec<Failure>,
}

impl Wishes {
    /// Reads all claims. A claim of the TrainJob replaces a claim of the runtime with the same name.
    pub(crate) fn read(ctx: &Context) -> Self {
        let job = ctx.job();
        let mut wishes = Self::default();
        let spec = job.spec();
        if spec.kind(FIELD.0).is_some() {
            wishes.add(spec, FIELD.0, FIELD.1);
        }
        if let Some(text) = job.annotation(PER_NODE) {
            wishes.add_annotation(ctx, &text, "");
        }
        let mut of_runtime = Self::of_runtime(ctx);
        let (own, excluded) = (&wishes.list, excluded(ctx));
        let is_new = |wish: &Wish| {
            !excluded.contains(&wish.name) && own.iter().all(|own| own.name != wish.name)
        };
        of_runtime.list.retain(is_new);
        wishes.list.extend(of_runtime.list);
        wishes.problems.extend(of_runtime.problems);
        wishes
    }

    /// Reads the claims of the runtime's annotation, regardless of the TrainJob.
    pub(crate) fn of_runtime(ctx: &Context) -> Self {
        let mut wishes = Self::default();
        if let Some(text) = ctx.job().runtime_annotation(PER_NODE) {
            wishes.add_annotation(ctx, &text, "runtime.");
        }
        wishes
    }

    fn add_annotation(&mut self, ctx: &Context, text: &str, of: &str) {
        let place = format!("{of}metadata.annotations[{PER_NODE}]");
        match ctx.parse_json(text) {
            Some(list) if list.kind("").as_deref() == Some("array") => self.add(&list, "", &place),
            _ => self.problems.push(
                Failure::from(
                    "must be a JSON list of claims, such as `[{\"name\": \"gpu\", \"resourceClaimTemplateName\": \"four-gpus\"}]`",
                )
                .at(place),
            ),
        }
    }

    /// Adds a list. If it is from an annotation, no schema has checked it.
    fn add(&mut self, list: &Document, at: &str, path: &str) {
        for index in 0..list.len(at) {
            let entry = Entry {
                document: list,
                at: format!("{at}/{index}"),
                path: format!("{path}[{index}]"),
            };
            match entry.read() {
                Ok(wish) if self.list.iter().any(|other| other.name == wish.name) => {
                    let name = wish.name;
                    let message = format!("duplicate claim `{name}`; request it once");
                    self.problems.push(Failure::from(message).at(wish.path));
                }
                Ok(wish) => self.list.push(wish),
                Err(problem) => self.problems.push(problem),
            }
        }
    }
}

/// The names of claims that the TrainJob excludes.
pub(crate) fn excluded(ctx: &Context) -> Vec<String> {
    let text = ctx.job().annotation(EXCLUDED).unwrap_or_default();
    let names = text.split(',').map(str::trim);
    let mut names: Vec<_> = names
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect();
    names.sort();
    names.dedup();
    names
}

/// The path of the annotation of [`excluded`].
pub(crate) fn excluded_path() -> String {
    format!("metadata.annotations[{EXCLUDED}]")
}

/// One entry of a list.
struct Entry<'a> {
    document: &'a Document,
    at: String,
    path: String,
}

impl Entry<'_> {
    fn read(&self) -> Result<Wish, Failure> {
        let members = self.document.keys(&self.at);
        if let Some(unknown) = members.iter().find(|member| !MEMBERS.contains(&&***member)) {
            let known = MEMBERS.join(", ");
            return Err(self.problem(unknown, &format!("unknown field; valid fields are {known}")));
        }
        let name = self.text("name")?;
        if let Some(name) = name.as_deref().filter(|name| !is_dns_label(name)) {
            let message = format!("`{name}` is not a DNS label: at most 63 of a-z, 0-9 and `-`");
            return Err(self.problem("name", &message));
        }
        let name = name.ok_or_else(|| {
            self.problem(
                "name",
                "is required; it is the name of the claim in the pods",
            )
        })?;
        let source = self.source(&name)?;
        let mut containers = self.texts("containerNames")?;
        if containers.is_empty() {
            containers.push(NODE.to_owned());
        }
        Ok(Wish {
            name,
            source,
            containers,
            path: self.path.clone(),
        })
    }

    fn source(&self, name: &str) -> Result<Source, Failure> {
        let claim = self.object_name("resourceClaimName")?;
        let template = self.object_name("resourceClaimTemplateName")?;
        let class = self.object_name("deviceClassName")?;
        let source = match (claim, template, class) {
            (Some(claim), None, None) => Source::Claim(claim),
            (None, Some(template), None) => Source::Template(template),
            (None, None, Some(class)) => return self.policy(name, class).map(Source::Made),
            (None, None, None) => return Err(self.sources("has no source")),
            _ => return Err(self.sources("has more than one source")),
        };
        let made = ["count", "selectors"].into_iter();
        let mut made = made.filter(|member| self.document.kind(&self.pointer(member)).is_some());
        match made.next() {
            Some(member) => Err(self.problem(
                member,
                "is allowed only with `deviceClassName`; an existing claim defines it itself",
            )),
            None => Ok(source),
        }
    }

    fn policy(&self, name: &str, class: String) -> Result<Policy, Failure> {
        let at = self.pointer("count");
        let count = match self.document.kind(&at) {
            None => Some(1),
            Some(_) => self
                .document
                .integer(&at)
                .and_then(|n| u32::try_from(n).ok()),
        };
        let count = count.filter(|count| (1..=MAX_DEVICES).contains(count));
        let selectors = self.texts("selectors")?;
        if selectors.len() > MAX_SELECTORS {
            let message = format!("has more than {MAX_SELECTORS} selectors");
            return Err(self.problem("selectors", &message));
        }
        let is_expression = |cel: &String| (1..=MAX_CEL).contains(&cel.len());
        if let Some(at) = selectors.iter().position(|cel| !is_expression(cel)) {
            let message = format!("must be a CEL expression of 1 to {MAX_CEL} bytes");
            return Err(self.problem(&format!("selectors[{at}]"), &message));
        }
        Ok(Policy {
            request: name.to_owned(),
            class,
            count: count.ok_or_else(|| {
                let message = format!("must be an integer from 1 to {MAX_DEVICES}");
                self.problem("count", &message)
            })?,
            selectors,
        })
    }

    /// A string that is not empty. `None` if it is absent.
    fn text(&self, member: &str) -> Result<Option<String>, Failure> {
        let at = self.pointer(member);
        if self.document.kind(&at).is_none() {
            return Ok(None);
        }
        let text = self.document.text(&at).filter(|text| !text.is_empty());
        match text {
            Some(text) => Ok(Some(text)),
            None => Err(self.problem(member, "must be a string that is not empty")),
        }
    }

    /// The name of an object. `None` if it is absent.
    fn object_name(&self, member: &str) -> Result<Option<String>, Failure> {
        let text = self.text(member)?;
        match text.as_deref().filter(|name| !is_dns_subdomain(name)) {
            Some(name) => {
                Err(self.problem(member, &format!("`{name}` is not a valid object name")))
            }
            None => Ok(text),
        }
    }

    /// A list of strings; empty if it is absent.
    fn texts(&self, member: &str) -> Result<Vec<String>, Failure> {
        let at = self.pointer(member);
        let text = |index| self.document.text(&format!("{at}/{index}"));
        let texts: Option<Vec<_>> = (0..self.document.len(&at)).map(text).collect();
        let is_list = matches!(self.document.kind(&at).as_deref(), None | Some("array"));
        texts
            .filter(|_| is_list)
            .ok_or_else(|| self.problem(member, "must be a list of strings"))
    }

    fn pointer(&self, member: &str) -> String {
        format!("{}/{member}", self.at)
    }

    fn problem(&self, member: &str, message: &str) -> Failure {
        Failure::from(message).at(format!("{}.{member}", self.path))
    }

    fn sources(&self, problem: &str) -> Failure {
        let message = format!(
            "{problem}; name one of `resourceClaimName`, `resourceClaimTemplateName` and `deviceClassName`"
        );
        Failure::from(message).at(&*self.path)
    }
}
