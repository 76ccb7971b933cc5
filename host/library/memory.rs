//! Memory that this process may still take: what is asked for beyond it would end in the kernel killing
//! a process, this one or another.

use std::fs;
use std::path::Path;

/// Bytes of memory that a body takes at least while it is of any use: itself, and a copy of it.
pub(crate) const BYTES_PER_BODY: u64 = 2 * 65;

/// Bytes of host memory per body of a run: the bodies, a backend's state and its packed copy, the last
/// good state, and what a checkpoint and a snapshot copy. Measured: 320 for leapfrog on the CPU, and 620
/// for Hermite's scheme, which needs the most.
pub const BYTES_PER_BODY_OF_A_RUN: u64 = 650;

/// More memory would be needed than there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{bodies} bodies need {} of memory, and there are {} ({limit}): ask for fewer",
    ByteCount(*.needed), ByteCount(*.available)
)]
pub struct NoRoom {
    /// Number of bodies.
    pub bodies: u64,
    /// Bytes needed.
    pub needed: u64,
    /// Bytes that can be had.
    pub available: u64,
    /// Limit that leaves this number of bytes.
    pub limit: &'static str,
}

/// A number of bytes, for people: `1.3 GB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteCount(pub u64);

impl std::fmt::Display for ByteCount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bytes = self.0 as f64;
        match self.0 {
            0..1_000_000 => write!(f, "{:.0} kB", bytes / 1e3),
            1_000_000..1_000_000_000 => write!(f, "{:.0} MB", bytes / 1e6),
            _ => write!(f, "{:.1} GB", bytes / 1e9),
        }
    }
}

/// Refuses bodies that there is no memory for, at so many bytes per body. Where it is not known how much
/// there is, nothing is refused.
///
/// # Errors
/// [`NoRoom`] says how much is needed and how much there is.
pub fn check(bodies: u64, bytes_per_body: u64) -> Result<(), NoRoom> {
    let needed = bodies.saturating_mul(bytes_per_body);
    match available() {
        Some((available, limit)) if needed > available => Err(NoRoom {
            bodies,
            needed,
            available,
            limit,
        }),
        _ => Ok(()),
    }
}

/// Bytes that this process may still take, and what limits them; nothing where it is not known: it is on
/// Linux.
pub fn available() -> Option<(u64, &'static str)> {
    let limits = [
        (of_machine(), "free on this machine"),
        (of_cgroup(), "left of the limit of this control group"),
        (
            of_process(),
            "left of the limit of this process, `ulimit -v`",
        ),
    ];
    let known = limits
        .into_iter()
        .filter_map(|(bytes, what)| Some((bytes?, what)));
    known.min_by_key(|&(bytes, _)| bytes)
}

fn of_machine() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    kilobytes(&text, "MemAvailable:")
}

/// The number after `name` in a list of kilobytes, in bytes.
fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    let number: u64 = rest.split_whitespace().next()?.parse().ok()?;
    number.checked_mul(1024)
}

fn of_process() -> Option<u64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let limit = address_space(&limits)?;
    let status = fs::read_to_string("/proc/self/status").ok()?;
    Some(limit.saturating_sub(kilobytes(&status, "VmSize:")?))
}

/// The soft limit of the address space; nothing where it is unlimited.
fn address_space(limits: &str) -> Option<u64> {
    let name = "Max address space";
    let rest = limits.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// Files of a version of control groups.
struct Group {
    folder: &'static str,
    limit: &'static str,
    used: &'static str,
    reclaimable: &'static str,
}

const V2: Group = Group {
    folder: "/sys/fs/cgroup",
    limit: "memory.max",
    used: "memory.current",
    reclaimable: "inactive_file ",
};

const V1: Group = Group {
    folder: "/sys/fs/cgroup/memory",
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    reclaimable: "total_inactive_file ",
};

fn of_cgroup() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let left = groups.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let group = match controllers {
            "" => V2,
            _ if controllers.split(',').any(|name| name == "memory") => V1,
            _ => return None,
        };
        let root = Path::new(group.folder);
        // Within a container, the path may be that of the host, and its root is the group.
        let own = root.join(path.trim_start_matches('/'));
        let folders = own
            .ancestors()
            .take_while(|folder| folder.starts_with(root));
        folders.filter_map(|folder| group.left(folder)).min()
    });
    left.min()
}

impl Group {
    /// Bytes left of the limit of the group that has this folder.
    fn left(&self, folder: &Path) -> Option<u64> {
        let number = |name: &str| -> Option<u64> {
            let text = fs::read_to_string(folder.join(name)).ok()?;
            text.trim().parse().ok() // "max" is none
        };
        let (limit, used) = (number(self.limit)?, number(self.used)?);
        let stat = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
        let cached = stat
            .lines()
            .find_map(|line| line.strip_prefix(self.reclaimable));
        let cached: u64 = cached.and_then(|number| number.parse().ok()).unwrap_or(0);
        Some(limit.saturating_sub(used.saturating_sub(cached)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read() {
        let text = "MemTotal:       24 kB\nMemAvailable:   20480 kB\n";
        assert_eq!(kilobytes(text, "MemAvailable:"), Some(20_480 * 1024));
        assert_eq!(kilobytes(text, "SwapFree:"), None);
        let limits = |soft: &str| {
            format!(
                "Max data size  unlimited  unlimited  bytes\nMax address space         {soft}            unlimited            bytes\n"
            )
        };
        assert_eq!(address_space(&limits("3072000000")), Some(3_072_000_000));
        assert_eq!(address_space(&limits("unlimited")), None);
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        put("memory.max", "max\n");
        put("memory.current", "700\n");
        assert_eq!(V2.left(folder.path()), None);
        put("memory.max", "1000\n");
        assert_eq!(V2.left(folder.path()), Some(300));
        put("memory.stat", "anon 5\ninactive_file 200\n");
        assert_eq!(V2.left(folder.path()), Some(500));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert_eq!(check(1000, BYTES_PER_BODY), Ok(()));
        if available().is_some() {
            let refused = check(u64::MAX, 1).unwrap_err();
            let said = refused.to_string();
            assert!(
                said.contains("GB of memory") && said.contains("ask for fewer"),
                "{said}"
            );
        }
        assert_eq!(ByteCount(63_500_000_000).to_string(), "63.5 GB");
        assert_eq!(ByteCount(130_000).to_string(), "130 kB");
    }
}
