//! `xoff grid slurm`: workers of a store as an array job of Slurm.

use std::io::Write as _;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use miette::{IntoDiagnostic, WrapErr, miette};
use xoff_results::human;

use super::Opened;
use crate::grid::quoted;
use crate::output;

#[derive(clap::Args)]
pub struct SlurmArgs {
    /// The store of `xoff grid plan`, which every node reaches
    #[arg(value_name = "STORE")]
    store: PathBuf,
    /// Workers: tasks of the array
    #[arg(long, value_name = "N", default_value = "10")]
    workers: NonZeroU32,
    /// Cores of a worker, which makes as many runs in parallel
    #[arg(long, value_name = "N", default_value = "1")]
    cpus: NonZeroU32,
    /// Submit the job with sbatch instead of printing it
    #[arg(long)]
    submit: bool,
    /// Options for sbatch, such as --partition=long --time=2:00:00
    #[arg(last = true, value_name = "OPTION")]
    options: Vec<String>,
}

pub fn slurm(args: &SlurmArgs) -> miette::Result<ExitCode> {
    let script = script(&args.store, args.workers, args.cpus, &args.options)?;
    output::print(&if args.submit { submit(&script, args.workers)? } else { script })?;
    Ok(ExitCode::SUCCESS)
}

/// The job: an array of workers.
///
/// # Errors
/// It is no store of this version, or an option is none.
pub fn script(
    store: &Path,
    workers: NonZeroU32,
    cpus: NonZeroU32,
    options: &[String],
) -> miette::Result<String> {
    let opened = Opened::at(store)?;
    if let Some(wrong) = options.iter().find(|o| !o.starts_with('-') || o.contains(char::is_control)) {
        let help = "write options of sbatch with their values, such as --partition=long";
        return Err(miette!(help = help, "`{wrong}` is no option of sbatch"));
    }
    let place = match opened.bucket.directory() {
        // The job may begin in another directory.
        Some(directory) => directory
            .canonicalize()
            .into_diagnostic()
            .wrap_err("the directory of the store cannot be found")?
            .display()
            .to_string(),
        None => opened.bucket.name(),
    };
    let name: String =
        opened.plan.name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let mut text = format!(
        "#!/bin/sh\n#SBATCH --job-name=xoff-{name}\n#SBATCH --array=1-{workers}\n#SBATCH --ntasks=1\n\
         #SBATCH --cpus-per-task={cpus}\n#SBATCH --requeue\n"
    );
    options.iter().for_each(|option| text += &format!("#SBATCH {option}\n"));
    // A worker that Slurm ends gives its chunk back; exec lets the signal reach it.
    text += &format!("exec xoff work {} --jobs \"$SLURM_CPUS_PER_TASK\"\n", quoted(&place));
    Ok(text)
}

/// Submits a job; returns its number in words.
///
/// # Errors
/// There is no sbatch, or it refuses the job.
pub fn submit(script: &str, workers: NonZeroU32) -> miette::Result<String> {
    let begun = Command::new("sbatch")
        .arg("--parsable")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut sbatch = begun.map_err(|e| {
        miette!(
            help = "submit it where Slurm is, or leave --submit out to print it",
            "sbatch cannot be started: {e}"
        )
    })?;
    // It may end before it has read everything; then its status says why.
    let _ = sbatch.stdin.take().expect("a pipe").write_all(script.as_bytes());
    let done = sbatch.wait_with_output().into_diagnostic()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_string();
    if !done.status.success() {
        return Err(miette!("sbatch refuses the job: {}", text(&done.stderr)));
    }
    let job = text(&done.stdout);
    let job = job.split(';').next().unwrap_or_default();
    Ok(format!("job {job}: {}\n", human::counted(workers.get().into(), "worker")))
}
