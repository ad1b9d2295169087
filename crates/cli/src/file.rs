//! Reading files that arguments and scenarios name, none of which can block for ever.

use std::io::{self, Read};
use std::{fs, path::Path};

/// No such file has more bytes: more is a file of another kind, named by mistake.
pub const LARGEST: u64 = 64 << 20;

/// Reads a regular file, or a pipe that a program writes, such as that of `<(…)` or `/dev/stdin`. Refuses
/// directories, devices, sockets, more than [`LARGEST`] bytes, and a pipe into which nothing writes.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let kind = fs::metadata(path)?.file_type();
    if kind.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let mut text = Vec::new();
    if kind.is_file() {
        fs::File::open(path)?.take(LARGEST + 1).read_to_end(&mut text)?;
    } else {
        special::read(path, kind, &mut text)?;
    }
    if text.len() as u64 > LARGEST {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(text)
}

fn refused(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

#[cfg(unix)]
mod special {
    use super::{LARGEST, refused};
    use std::fs::{FileType, OpenOptions};
    use std::io::{self, Read};
    use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
    use std::time::{Duration, Instant};
    use std::{path::Path, thread::sleep};

    /// How long a pipe waits for its writer, which may begin a little later.
    const PATIENCE: Duration = Duration::from_secs(1);
    const NAP: Duration = Duration::from_millis(2);

    /// Reads a pipe to its end, or to more than [`LARGEST`] bytes.
    pub fn read(path: &Path, kind: FileType, text: &mut Vec<u8>) -> io::Result<()> {
        if !kind.is_fifo() {
            let what = if kind.is_socket() { "socket" } else { "device" };
            return Err(refused(&format!("it is a {what}, not a file")));
        }
        // Else a pipe without a writer would block when it is opened.
        let mut pipe = OpenOptions::new().read(true).custom_flags(nix::libc::O_NONBLOCK).open(path)?;
        let (began, mut written) = (Instant::now(), false);
        let mut part = vec![0; 1 << 16];
        while text.len() as u64 <= LARGEST {
            match pipe.read(&mut part) {
                Ok(0) if written => break,
                Ok(0) if began.elapsed() > PATIENCE => {
                    return Err(refused("it is a pipe, and no program writes into it"));
                }
                Ok(0) => sleep(NAP),
                Ok(n) => {
                    written = true;
                    text.extend(&part[..n]);
                }
                // A program has the pipe open, and has nothing to say yet.
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    written = true;
                    sleep(NAP);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }
}

#[cfg(not(unix))]
mod special {
    use super::refused;
    use std::{fs::FileType, io, path::Path};

    pub fn read(_: &Path, _: FileType, _: &mut Vec<u8>) -> io::Result<()> {
        Err(refused("it is not a regular file"))
    }
}
