//! `trainyard crds`.

use trainyard_config::policy_plugin::Crd;
use trainyard_schema::documents::Kind;

use crate::{args::ObjectFormat, output, report::ErrorList};

pub(crate) fn run() -> Result<(), ErrorList> {
    let of_trainer = Kind::ALL.into_iter().map(Kind::crd);
    let of_trainer = of_trainer.collect::<Result<Vec<_>, _>>();
    let ours = Crd::ALL.into_iter().map(Crd::definition);
    let ours = ours.collect::<Result<Vec<_>, _>>();
    let mut crds = of_trainer.map_err(anyhow::Error::from)?;
    crds.extend(ours.map_err(anyhow::Error::from)?);
    output::objects(crds, ObjectFormat::Yaml)
}
