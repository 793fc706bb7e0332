//! `trainyard crds`.

use trainyard_schema::documents::Kind;

use crate::{args::ObjectFormat, output, report::ErrorList};

pub(crate) fn run() -> Result<(), ErrorList> {
    let crds = Kind::ALL.into_iter().map(Kind::crd);
    let crds = crds
        .collect::<Result<Vec<_>, _>>()
        .map_err(anyhow::Error::from)?;
    output::objects(crds, ObjectFormat::Yaml)
}
