//! The GPU generations that modules are built for.

use crate::BuilderError;
use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

macro_rules! generations {
    ($($variant:ident = $number:literal, ptx $ptx:literal, $doc:literal;)*) => {
        /// A GPU generation: what `-C target-cpu` names. Ordered from old to new.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum NvptxArch { $(#[doc = $doc] $variant,)* }

        impl NvptxArch {
            /// Every generation that can be named.
            pub const ALL: &[NvptxArch] = &[$(NvptxArch::$variant,)*];

            /// Compute capability as major · 10 + minor: 90 for compute capability 9.0.
            pub const fn number(self) -> u32 {
                match self { $(NvptxArch::$variant => $number,)* }
            }

            /// PTX ISA version (major · 10 + minor) that modules of this generation are written in.
            ///
            /// It is the lowest that serves the generation, because a driver rejects modules of
            /// an ISA newer than itself. For most that is the version which introduced the
            /// generation; `sm_80` takes 7.8 instead of 7.0 for `movmatrix`, and `sm_90` 8.1 instead of
            /// 7.8 for `red.global.add.v4.f32`.
            pub const fn ptx_version(self) -> u32 {
                match self { $(NvptxArch::$variant => $ptx,)* }
            }
        }
    };
}

generations! {
    Sm70 = 70, ptx 60, "Volta, compute capability 7.0.";
    Sm75 = 75, ptx 63, "Turing, compute capability 7.5.";
    Sm80 = 80, ptx 78, "Ampere (A100), compute capability 8.0: tf32 and f16 matrix instructions.";
    Sm86 = 86, ptx 78, "Ampere (consumer), compute capability 8.6.";
    Sm89 = 89, ptx 78, "Ada, compute capability 8.9.";
    Sm90 = 90, ptx 81, "Hopper, compute capability 9.0: vector reductions to global memory.";
    Sm100 = 100, ptx 86, "Blackwell (data centre), compute capability 10.0.";
    Sm120 = 120, ptx 87, "Blackwell (consumer), compute capability 12.0.";
}

impl fmt::Display for NvptxArch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}", self.number())
    }
}

impl FromStr for NvptxArch {
    type Err = BuilderError;

    fn from_str(name: &str) -> Result<Self, BuilderError> {
        Self::ALL
            .iter()
            .copied()
            .find(|arch| arch.to_string() == name)
            .ok_or_else(|| BuilderError::UnknownArch {
                name: name.to_owned(),
            })
    }
}

impl TryFrom<&str> for NvptxArch {
    type Error = BuilderError;

    fn try_from(name: &str) -> Result<Self, BuilderError> {
        name.parse()
    }
}

// Lets `CudaBuilder::arch` take an `NvptxArch` (whose conversion cannot fail) as well as a name.
impl From<Infallible> for BuilderError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_newer_generations_never_need_older_ptx() {
        for pair in NvptxArch::ALL.windows(2) {
            assert!(pair[0].number() < pair[1].number());
            assert!(pair[0].ptx_version() <= pair[1].ptx_version());
        }
        for &arch in NvptxArch::ALL {
            assert_eq!(arch.to_string().parse::<NvptxArch>().unwrap(), arch);
        }
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_names_that_exist() {
        let message = "compute_90".parse::<NvptxArch>().unwrap_err().to_string();
        assert!(
            message.contains("compute_90") && message.contains("sm_75"),
            "{message}"
        );
    }
}
