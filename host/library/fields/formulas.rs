//! The fields that are formulas: their names and parameters.

use gpu_kernels::fields::Kind;

/// A kind of field, as it is named and given.
#[derive(Debug)]
pub(crate) struct Formula {
    pub(crate) kind: Kind,
    pub(crate) name: &'static str,
    pub(crate) parameters: &'static [Parameter],
}

/// A formula and its parameters for serde: by its name.
#[cfg(feature = "serde")]
pub(super) mod form {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{FORMULAS, Formula};

    pub(crate) fn serialize<S: Serializer>(
        formula: &Formula,
        values: &[f64],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        (formula.name, values).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<(&'static Formula, Vec<f64>), D::Error> {
        let (name, values): (String, Vec<f64>) = Deserialize::deserialize(from)?;
        let is_meant = |of: &&&Formula| of.name == name && of.parameters.len() == values.len();
        match FORMULAS.iter().find(is_meant) {
            Some(formula) => Ok((formula, values)),
            None => {
                let count = values.len();
                Err(D::Error::custom(format_args!(
                    "there is no field `{name}` of {count} parameters"
                )))
            }
        }
    }
}

/// A parameter of a field.
#[derive(Debug)]
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(crate) quantity: Quantity,
    pub(crate) allowed: Allowed,
    pub(crate) default: Default,
}

/// Value of a parameter that is not given.
#[derive(Debug)]
pub(crate) enum Default {
    /// None: it must be given.
    Needed,
    /// A number.
    Is(f64),
    /// That of the first parameter.
    AsFirst,
}

/// Dimension of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quantity {
    Mass,
    Length,
    Speed,
    Frequency,
    Number,
}

/// Values that a parameter may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Allowed {
    Finite,
    Positive,
    NotNegative,
    BelowTwo,
}

impl Allowed {
    pub(super) fn holds(self, value: f64) -> bool {
        value.is_finite()
            && match self {
                Self::Finite => true,
                Self::Positive => value > 0.0,
                Self::NotNegative => value >= 0.0,
                Self::BelowTwo => (0.0..2.0).contains(&value),
            }
    }

    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Finite => "finite",
            Self::Positive => "> 0 and finite",
            Self::NotNegative => "≥ 0 and finite",
            Self::BelowTwo => "≥ 0 and < 2",
        }
    }
}

const fn needed(name: &'static str, quantity: Quantity, allowed: Allowed) -> Parameter {
    Parameter {
        name,
        quantity,
        allowed,
        default: Default::Needed,
    }
}

const MASS: Parameter = needed("mass", Quantity::Mass, Allowed::Finite);

const SCALE: Parameter = needed("scale", Quantity::Length, Allowed::Positive);

pub(super) const POINT: &Formula = &Formula {
    kind: Kind::Point,
    name: "point",
    parameters: &[MASS],
};

pub(super) const PLUMMER: &Formula = &Formula {
    kind: Kind::Plummer,
    name: "plummer",
    parameters: &[MASS, SCALE],
};

pub(super) const HERNQUIST: &Formula = &Formula {
    kind: Kind::Hernquist,
    name: "hernquist",
    parameters: &[MASS, SCALE],
};

pub(super) const NFW: &Formula = &Formula {
    kind: Kind::Nfw,
    name: "nfw",
    parameters: &[MASS, SCALE],
};

pub(super) const MIYAMOTO_NAGAI: &Formula = &Formula {
    kind: Kind::MiyamotoNagai,
    name: "miyamoto-nagai",
    parameters: &[
        MASS,
        needed("a", Quantity::Length, Allowed::NotNegative),
        needed("b", Quantity::Length, Allowed::Positive),
    ],
};

pub(super) const ISOCHRONE: &Formula = &Formula {
    kind: Kind::Isochrone,
    name: "isochrone",
    parameters: &[MASS, SCALE],
};

pub(super) const LOGARITHMIC: &Formula = &Formula {
    kind: Kind::Logarithmic,
    name: "logarithmic",
    parameters: &[
        needed("speed", Quantity::Speed, Allowed::Finite),
        Parameter {
            name: "core",
            quantity: Quantity::Length,
            allowed: Allowed::NotNegative,
            default: Default::Is(0.0),
        },
        Parameter {
            name: "flattening",
            quantity: Quantity::Number,
            allowed: Allowed::Positive,
            default: Default::Is(1.0),
        },
    ],
};

pub(super) const POWER_LAW: &Formula = &Formula {
    kind: Kind::PowerLaw,
    name: "power-law",
    parameters: &[
        MASS,
        needed("cutoff", Quantity::Length, Allowed::Positive),
        needed("exponent", Quantity::Number, Allowed::BelowTwo),
    ],
};

pub(super) const TIDE: &Formula = &Formula {
    kind: Kind::Tide,
    name: "tide",
    parameters: &[
        needed("omega", Quantity::Frequency, Allowed::Finite),
        Parameter {
            name: "kappa",
            quantity: Quantity::Frequency,
            allowed: Allowed::Finite,
            default: Default::AsFirst,
        },
        Parameter {
            name: "nu",
            quantity: Quantity::Frequency,
            allowed: Allowed::Finite,
            default: Default::AsFirst,
        },
    ],
};

/// All formulas.
pub(crate) const FORMULAS: [&Formula; 9] = [
    POINT,
    PLUMMER,
    HERNQUIST,
    NFW,
    MIYAMOTO_NAGAI,
    ISOCHRONE,
    LOGARITHMIC,
    POWER_LAW,
    TIDE,
];
