//! A thousand renderings of one row of the benchmark, for a tool that counts instructions, which vary less than wall time: `renders ROW KIND`,
//! where KIND is `sandboxed`, `native`, or `nothing` for the preparations alone.

use anyhow::{Context as _, bail};
use trainyard_bench::{Job, loader, native, rows, sandboxed};

fn main() -> anyhow::Result<()> {
    let mut args = std::env::args().skip(1);
    let usage = "usage: renders ROW sandboxed|native|nothing";
    let (name, kind) = (args.next().context(usage)?, args.next().context(usage)?);
    let row = rows().into_iter().find(|row| row.name == name);
    let row = row.with_context(|| format!("no row is named `{name}`"))?;
    let job = Job::read(row.size)?;
    let (chain, times) = match kind.as_str() {
        "sandboxed" => (sandboxed(&loader(1)?, row.plugins)?, 1000),
        "native" => (native(row.plugins)?, 1000),
        "nothing" => (native(row.plugins)?, 0),
        _ => bail!(usage),
    };
    let renderer = chain.renderer()?;
    for _ in 0..times {
        job.encoded(&renderer)?;
    }
    Ok(())
}
