//! Things that ranks must have in common.

/// A rank, as it says of itself to the others.
#[derive(Clone, Debug)]
pub struct Member {
    /// Version of the program, with its commit and processor.
    pub version: String,
    /// Arguments of the program.
    pub arguments: String,
    /// Threads that it computes on.
    pub threads: usize,
}

/// Ranks that cannot compute together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Differs {
    /// They are of different versions.
    #[error(
        "rank {rank} is allpairs {its}, and rank 0 is {first}: start one version on all machines"
    )]
    Version {
        /// The first rank that differs.
        rank: usize,
        /// Version of that rank.
        its: String,
        /// That of rank 0.
        first: String,
    },
    /// They were told to do different things.
    #[error(
        "rank {rank} was started with `{its}`, and rank 0 with `{first}`: start all ranks with the same \
         arguments, or set `ALLPAIRS_LIBMPI=none` for a run of each"
    )]
    Arguments {
        /// The first rank that differs.
        rank: usize,
        /// Arguments of that rank.
        its: String,
        /// Arguments of rank 0.
        first: String,
    },
}

/// Between the texts of a member.
const BETWEEN: char = '\0';

impl Member {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        format!("{}{BETWEEN}{}", self.version, self.arguments).into_bytes()
    }
}

/// Compares what all ranks say with what rank 0 says.
pub(super) fn check(all: &[Vec<u8>]) -> Result<(), Differs> {
    let texts = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let (version, arguments) = text.split_once(BETWEEN).unwrap_or((&text, ""));
        (version.to_owned(), arguments.to_owned())
    };
    let (version, arguments) = texts(&all[0]);
    for (rank, bytes) in all.iter().enumerate() {
        let (its_version, its_arguments) = texts(bytes);
        if its_version != version {
            let (its, first) = (its_version, version);
            return Err(Differs::Version { rank, its, first });
        }
        if its_arguments != arguments {
            let (its, first) = (its_arguments, arguments);
            return Err(Differs::Arguments { rank, its, first });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ranks::threads;

    fn member(version: &str, arguments: &str) -> Vec<u8> {
        let (version, arguments) = (version.to_owned(), arguments.to_owned());
        let threads = 1;
        Member {
            version,
            arguments,
            threads,
        }
        .to_bytes()
    }

    #[test]
    fn the_first_rank_that_differs_is_named() {
        let same = member("1", "run a");
        assert_eq!(check(&[same.clone(), same.clone()]), Ok(()));
        let other = [same.clone(), same.clone(), member("2", "run a")];
        let said = check(&other).expect_err("another version").to_string();
        assert!(
            said.starts_with("rank 2 is allpairs 2, and rank 0 is 1: "),
            "{said}"
        );
        let said = check(&[same, member("1", "run b")]).expect_err("other arguments");
        assert!(said.to_string().contains("rank 1 was started with `run b`"));
    }

    #[test]
    fn all_ranks_refuse_with_the_same_words() {
        let refused = threads::ranks(3, |ranks| {
            let rank = ranks.rank();
            let me = Member {
                version: format!("0.{}", rank / 2),
                arguments: "run".into(),
                threads: 1,
            };
            super::super::Team::new(ranks, &me).expect_err("rank 2 differs")
        });
        assert!(refused.iter().all(|why| *why == refused[0]));
    }
}
