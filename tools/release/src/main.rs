//! The commands that `tools/image.sh` and `tools/release.sh` call.

use std::{fs, path::PathBuf};

use anyhow::Context as _;
use clap::Parser;
use trainyard_release::{Archive, Contents, Image, notes, package};

const VERSION: &str = env!("CARGO_PKG_VERSION");

#[derive(Debug, Parser)]
#[command(about, version)]
enum Command {
    /// Write the image, as a layout in a new folder, and print its digest.
    Image {
        /// The folder of the layout.
        #[arg(long)]
        output: PathBuf,
        /// An architecture and the folder with the files of its image.
        #[arg(required = true, value_name = "ARCHITECTURE=FOLDER", value_parser = root)]
        roots: Vec<(String, PathBuf)>,
    },
    /// Write a folder as an archive without times and owners.
    Archive {
        /// The archive.
        #[arg(long)]
        output: PathBuf,
        /// The folder.
        folder: PathBuf,
    },
    /// Write the package of a chart.
    Chart {
        /// The package.
        #[arg(long)]
        output: PathBuf,
        /// The chart's folder.
        folder: PathBuf,
    },
    /// Print the release notes.
    Notes {
        /// The changelog.
        changelog: PathBuf,
    },
    /// Write the list of a release's files, and print it.
    Contents {
        /// The commit from which the release was made.
        #[arg(long)]
        commit: String,
        /// The digest of the image.
        #[arg(long)]
        image: String,
        /// The folder of the release.
        folder: PathBuf,
    },
}

fn root(text: &str) -> Result<(String, PathBuf), String> {
    let parts = text.split_once('=');
    let (architecture, folder) = parts.ok_or("must be ARCHITECTURE=FOLDER, such as amd64=root")?;
    Ok((architecture.to_owned(), folder.into()))
}

fn main() -> anyhow::Result<()> {
    match Command::parse() {
        Command::Image { output, roots } => {
            let version = VERSION;
            let roots = &roots;
            println!("{}", Image { version, roots }.write(&output)?);
        }
        Command::Archive { output, folder } => {
            write(output, &Archive::of_folder(&folder)?.tar()?)?;
        }
        Command::Chart { output, folder } => write(output, &package(&folder)?)?,
        Command::Notes { changelog } => {
            let text = fs::read_to_string(&changelog)
                .with_context(|| format!("{}: cannot be read", changelog.display()))?;
            print!("{}", notes(&text, VERSION)?);
        }
        Command::Contents {
            commit,
            image,
            folder,
        } => {
            let contents = Contents {
                version: VERSION,
                commit: &commit,
                image: &image,
            };
            for line in contents.write(&folder)? {
                println!("{line}");
            }
        }
    }
    Ok(())
}

fn write(path: PathBuf, bytes: &[u8]) -> anyhow::Result<()> {
    fs::write(&path, bytes).with_context(|| format!("{}: cannot be written", path.display()))
}
