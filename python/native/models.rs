//! Initial conditions, and units.

use allpairs::diagnostics::lagrangian_radii;
use allpairs::initial_conditions::{self, GENERATORS, Options, Parameter, Size};
use allpairs::physics::{ForceLaw, Physics};
use allpairs::suggest;
use allpairs::units::{Length, Mass, Measure, Units, UnknownUnits};
use pyo3::prelude::*;

use crate::bodies::{Arrays, NewArrays, arrays, bodies};
use crate::errors::{Failure, Kind};
use crate::work::{compute, compute_long};

/// A generator: name, summary, and its parameters with their defaults and summaries.
type Described = (
    &'static str,
    &'static str,
    Vec<(&'static str, f64, &'static str)>,
);

/// All generators.
#[pyfunction]
pub(crate) fn generators() -> Vec<Described> {
    let parameters = |generator: &initial_conditions::Generator| {
        let parameters = generator.parameters.iter();
        parameters
            .map(|(parameter, default)| (parameter.name(), *default, parameter.summary()))
            .collect()
    };
    GENERATORS
        .iter()
        .map(|generator| (generator.name, generator.summary, parameters(generator)))
        .collect()
}

/// Options of a generator.
pub(crate) fn options(of: Option<&str>) -> Result<Options, Failure> {
    match of {
        Some(of) => Options::default()
            .of(of)
            .map_err(|error| Failure::of("of", error)),
        None => Ok(Options::default()),
    }
}

/// A number, or a length with a unit.
#[derive(FromPyObject)]
pub(crate) enum Value {
    Number(f64),
    Length(String),
}

/// An option of a generator with a value, where the length that is 1 in the model is known if it has one.
fn with(
    options: Options,
    name: &str,
    value: &Value,
    radius: Option<Length>,
) -> Result<Options, Failure> {
    let failure = |text: String| Failure::new(Kind::Argument, text);
    let parameter = Parameter::ALL.into_iter().find(|p| p.name() == name);
    let parameter = parameter
        .ok_or_else(|| failure(format!("there is no option `{name}` of initial conditions")))?;
    let argument = name.replace('-', "_");
    match value {
        Value::Number(number) => Ok(options.with(parameter, *number)),
        Value::Length(text) if !parameter.is_length() => Err(failure(format!(
            "`{argument}` must be a number, got {text:?}"
        ))),
        Value::Length(text) => {
            let named =
                |error: &dyn ToString| failure(format!("`{argument}`: {}", error.to_string()));
            let length: Measure = text.parse().map_err(|error| named(&error))?;
            let with = options.with_length(parameter, &length, radius);
            with.map_err(|error| named(&error))
        }
    }
}

/// Bodies, their time, and their units where they have any.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "one for each option")]
pub(crate) fn generate<'py>(
    py: Python<'py>,
    name: String,
    seed: u64,
    of: Option<String>,
    masses: Option<String>,
    parameters: Vec<(String, Value)>,
    mass: Option<String>,
    radius: Option<String>,
    half_mass_radius: Option<String>,
    units: Option<String>,
) -> PyResult<(NewArrays<'py>, f64, Option<String>)> {
    let (snapshot, units) = compute_long(py, move || {
        let generator = initial_conditions::find(&name)?;
        let mut options = options(of.as_deref())?;
        options.seed = seed;
        options.masses = masses.map(|name| parsed(&name, "masses")).transpose()?;
        let units = units.map(|text| parsed(&text, "units")).transpose()?;
        let radius = radius.map(|text| parsed::<Length>(&text, "radius"));
        let radius = radius.transpose()?;
        for (name, value) in &parameters {
            options = with(options, name, value, radius)?;
        }
        let unit = match (radius, half_mass_radius) {
            (Some(radius), None) => Some(radius.0),
            (None, Some(text)) => {
                let Length(wanted) = parsed(&text, "half_mass_radius")?;
                let model = generator.generate(&options)?;
                let physics = Physics {
                    law: ForceLaw::Gravity,
                    g: 1.0,
                    softening: 0.0,
                };
                let centre = model.centre_of_mass().unwrap_or_default();
                let [half] = lagrangian_radii(&model, &physics, centre, &[0.5]);
                Some(wanted / half)
            }
            (None, None) => None,
            (Some(_), Some(_)) => {
                let text = "give `radius` or `half_mass_radius`, not both";
                return Err(Failure::of("half_mass_radius", text));
            }
        };
        let size = match (mass, unit) {
            (mass, Some(radius)) => Some(Size {
                mass: mass.map(|mass| parsed::<Mass>(&mass, "mass")).transpose()?,
                radius: Length(radius),
            }),
            (None, None) => None,
            (Some(_), None) => {
                return Err(Failure::of("radius", "`mass` needs `radius` as well"));
            }
        };
        Ok(generator.make(&options, size, units)?)
    })?;
    let units = units.map(|units| units.list());
    Ok((arrays(py, snapshot.bodies)?, snapshot.time, units))
}

/// An argument that is read from text.
pub(crate) fn parsed<T: std::str::FromStr<Err: ToString>>(
    text: &str,
    argument: &'static str,
) -> Result<T, Failure> {
    text.parse().map_err(|error: T::Err| {
        Failure::of(argument, format!("`{argument}`: {}", error.to_string()))
    })
}

/// A system of units as its list; its length, mass and time in SI units; its G; and its names.
#[pyfunction]
pub(crate) fn units(py: Python<'_>, text: &str) -> PyResult<(String, f64, f64, f64, f64, String)> {
    let units: Units = compute(py, || parsed(text, "units"))?;
    let Units { length, mass, time } = units;
    let names = units.names();
    Ok((units.list(), length, mass, time, units.gravity(), names))
}

/// The unit in which times of bodies in these units are shown, and the factor of numbers in it: the unit of the
/// text that was asked for, if it is a time with a unit, else one that is handy for a typical time.
#[pyfunction]
pub(crate) fn shown_time(
    py: Python<'_>,
    units: &str,
    typical: f64,
    asked: Option<&str>,
) -> PyResult<(&'static str, f64)> {
    let units: Units = compute(py, || parsed(units, "units"))?;
    let asked = asked.and_then(|text| text.parse::<Measure>().ok());
    let asked = asked.and_then(|measure| measure.shown_time(&units));
    let shown = asked.unwrap_or_else(|| units.shown_time(typical));
    Ok((shown.name, shown.factor))
}

/// A time, a length or a mass, such as `10Myr`, as a number in these units.
#[pyfunction]
pub(crate) fn measure(
    py: Python<'_>,
    argument: &str,
    text: &str,
    dimension: &str,
    units: Option<&str>,
) -> PyResult<f64> {
    compute(py, || {
        let units = units.map(|units| parsed::<Units>(units, "units"));
        let units = units.transpose()?;
        let failure = |error: &dyn ToString| {
            Failure::new(
                Kind::Argument,
                format!("`{argument}`: {}", error.to_string()),
            )
        };
        if dimension == "mass" {
            let Mass(kilograms) = text
                .parse()
                .map_err(|error: UnknownUnits| failure(&error))?;
            let unknown = &format!("`{text}` has a unit, and the bodies have none: give a number");
            return Ok(kilograms / units.ok_or_else(|| failure(unknown))?.mass);
        }
        let measure = text.parse::<Measure>().map_err(|error| failure(&error))?;
        let number = match dimension {
            "time" => measure.time(units.as_ref()),
            _ => measure.length(units.as_ref()),
        };
        number.map_err(|error| failure(&error))
    })
}

/// Bodies and time in other units, and these; to `nbody` too.
#[pyfunction]
pub(crate) fn convert<'py>(
    py: Python<'py>,
    all: Arrays<'py>,
    time: f64,
    from: &str,
    to: &str,
) -> PyResult<(NewArrays<'py>, f64, String)> {
    let mut state = bodies(&all)?;
    let (state, time, units) = compute(py, move || {
        let source: Units = parsed(from, "units")?;
        let target = match to.eq_ignore_ascii_case("nbody") {
            true => suggest::standard_units(&state, source)?,
            false => parsed(to, "units")?,
        };
        let factors = source.factors_to(&target);
        factors.apply(&mut state);
        state.check()?;
        Ok((state, time * factors.time, target))
    })?;
    Ok((arrays(py, state)?, time, units.list()))
}
