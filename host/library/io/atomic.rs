//! Files that appear whole or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Names of files that are not complete.
const PREFIX: &str = ".allpairs-";
const SUFFIX: &str = ".partial";

/// Files may be without their lock for so long.
const YOUNG: Duration = Duration::from_secs(60);

/// Policy for a file to be written that is already there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Overwrite {
    /// Leave it as it is and fail with [`io::ErrorKind::AlreadyExists`].
    #[default]
    Refuse,
    /// Replace it, once the new content is complete and on disk.
    Allow,
}

impl From<bool> for Overwrite {
    /// Replaces what is there if true.
    fn from(replace: bool) -> Self {
        if replace { Self::Allow } else { Self::Refuse }
    }
}

/// Writes `path` through a temporary file of the same folder that is flushed to disk and then
/// renamed, so that no reader ever sees half a file and a failed write leaves the old one.
///
/// A symbolic link is followed, and a replaced file's permissions are kept.
///
/// # Errors
/// Whatever `content` returns; `AlreadyExists` under [`Overwrite::Refuse`]; `InvalidInput` if
/// `path` is there and is no regular file; any other failure of the file system.
pub fn write_atomically<E: From<io::Error>>(
    path: &Path,
    overwrite: Overwrite,
    content: impl FnOnce(&mut BufWriter<&mut File>) -> Result<(), E>,
) -> Result<(), E> {
    let replaced = match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => return Err(not_a_file().into()),
        // Said before the work is done; the rename below still decides, in case of a race.
        Ok(_) if overwrite == Overwrite::Refuse => return Err(already_there().into()),
        Ok(metadata) => Some(metadata.permissions()),
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => None,
        Err(fault) => return Err(fault.into()),
    };
    let target = match replaced {
        Some(_) => fs::canonicalize(path)?,
        None => path.to_path_buf(),
    };
    let folder = folder_of(&target);

    let mut file = temporary_file(folder)?;
    let mut buffered = BufWriter::with_capacity(1 << 16, file.as_file_mut());
    content(&mut buffered)?;
    buffered.flush()?;
    drop(buffered);
    if let Some(permissions) = replaced {
        file.as_file().set_permissions(permissions)?;
    }
    file.as_file().sync_all()?;

    let renamed = match overwrite {
        Overwrite::Refuse => file.persist_noclobber(&target),
        Overwrite::Allow => file.persist(&target),
    };
    match renamed {
        Ok(_) => {}
        Err(fault) if fault.error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(already_there().into());
        }
        Err(fault) => return Err(fault.error.into()),
    }
    // Makes the new name itself survive a power cut. The file is whole and in place by now, and
    // some file systems cannot sync a folder: a failure here is not a failure to write.
    #[cfg(unix)]
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
    Ok(())
}

/// The folder that a file is or will be in.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Returns whether a file is one that a process was killed in the middle of writing: incomplete,
/// and of no use.
pub fn is_partial(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with(PREFIX) && name.ends_with(SUFFIX)
}

/// Removes files of `folder` that processes were killed in the middle of writing, and returns their
/// names. Those that a process may still be writing stay: they are locked, or younger than a minute.
///
/// # Errors
/// The file system's refusal.
pub fn remove_abandoned(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut removed = vec![];
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if is_partial(&path) && is_abandoned(&path).unwrap_or(false) {
            fs::remove_file(&path)?;
            removed.push(path);
        }
    }
    removed.sort();
    Ok(removed)
}

fn is_abandoned(path: &Path) -> io::Result<bool> {
    let metadata = fs::symlink_metadata(path)?;
    let age = metadata.modified()?.elapsed().unwrap_or_default();
    // It is locked a moment after it is made.
    Ok(metadata.is_file() && age >= YOUNG && File::open(path)?.try_lock().is_ok())
}

/// A file for what is not complete yet, removed when dropped.
pub(crate) fn temporary_file(folder: &Path) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(PREFIX).suffix(SUFFIX);
    // The usual mode of new files (the umask applies), not the private one of temporary files.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    // Of the frequent refusals, without the temporary name, which the user did not choose.
    let file = builder.tempfile_in(folder).map_err(|fault| {
        let folder = folder.display();
        let why = match fault.kind() {
            io::ErrorKind::NotFound => format!("there is no folder {folder}; make it first"),
            io::ErrorKind::PermissionDenied => {
                format!("nothing may be written in the folder {folder}; choose another")
            }
            _ => return fault,
        };
        io::Error::new(fault.kind(), why)
    })?;
    // Tells it from a file whose process was killed; some file systems know no locks.
    let _ = file.as_file().try_lock();
    Ok(file)
}

fn already_there() -> io::Error {
    io::Error::new(
        io::ErrorKind::AlreadyExists,
        "the file already exists; choose another name or allow overwriting",
    )
}

fn not_a_file() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidInput,
        "this is a folder or a device, not a regular file; choose another name",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(path: &Path, overwrite: Overwrite, text: &str) -> io::Result<()> {
        write_atomically(path, overwrite, |file| file.write_all(text.as_bytes()))
    }

    /// Names of everything in `folder`, to see that no temporary file stays behind.
    fn listing(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn refuses_then_replaces() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        put(&path, Overwrite::Refuse, "one").unwrap();
        let refusal = put(&path, Overwrite::Refuse, "two").unwrap_err();
        assert_eq!(refusal.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&path).unwrap(), "one");
        put(&path, Overwrite::Allow, "three").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "three");
        assert_eq!(listing(folder.path()), ["a"]);
    }

    #[test]
    fn a_failed_write_keeps_the_old_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        put(&path, Overwrite::Refuse, "old").unwrap();
        let outcome = write_atomically(&path, Overwrite::Allow, |file| {
            file.write_all(b"half of the new")?;
            Err(io::Error::other("stopped"))
        });
        assert_eq!(outcome.unwrap_err().to_string(), "stopped");
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(listing(folder.path()), ["a"]);
    }

    #[test]
    fn folders_and_missing_folders_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let outcome = put(folder.path(), Overwrite::Allow, "x");
        assert_eq!(outcome.unwrap_err().kind(), io::ErrorKind::InvalidInput);
        let outcome = put(&folder.path().join("none/a"), Overwrite::Allow, "x");
        let fault = outcome.unwrap_err();
        assert_eq!(fault.kind(), io::ErrorKind::NotFound);
        let message = fault.to_string();
        assert!(
            message.contains("no folder") && !message.contains(".partial"),
            "{message}"
        );
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_and_permissions_kept() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        symlink(&file, &link).unwrap();
        put(&link, Overwrite::Allow, "new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(
            fs::metadata(&file).unwrap().permissions().mode() & 0o777,
            0o640
        );
    }

    #[test]
    fn only_what_nobody_writes_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let make = |name: &str, age: u64| {
            let path = folder.path().join(name);
            let file = File::create(&path).unwrap();
            file.set_modified(std::time::SystemTime::now() - Duration::from_secs(age))
                .unwrap();
            (path, file)
        };
        let (old, _) = make(".allpairs-a.partial", 3600);
        let (_, locked) = make(".allpairs-b.partial", 3600);
        locked.try_lock().unwrap();
        make(".allpairs-c.partial", 1);
        make("mine.partial", 3600);
        assert_eq!(remove_abandoned(folder.path()).unwrap(), [old]);
        assert_eq!(
            listing(folder.path()),
            [".allpairs-b.partial", ".allpairs-c.partial", "mine.partial"]
        );
    }
}
