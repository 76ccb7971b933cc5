//! Fields as plain numbers, for other processes.

use std::sync::Arc;

use super::{Centre, ExternalField, FORMULAS, Fields, Orbit, Path, Shape};

/// Number that stands for the first post-Newtonian term in the place of a formula's index.
const RELATIVITY: f64 = FORMULAS.len() as f64;
/// Number in the place of the orbit of the origin.
const ORBIT: f64 = RELATIVITY + 1.0;

impl Fields {
    /// These fields as numbers; none if one of them is a function of this process.
    pub(crate) fn to_numbers(&self) -> Option<Vec<f64>> {
        let mut numbers = vec![];
        if let Some(orbit) = self.orbit() {
            numbers.extend([ORBIT, orbit.start]);
            numbers.extend(orbit.position.iter().chain(&orbit.velocity));
        }
        for field in self.iter() {
            match &field.shape {
                Shape::Formula(formula, values) => {
                    let index = FORMULAS.iter().position(|f| f.kind == formula.kind)?;
                    numbers.push(index as f64);
                    numbers.extend(values);
                }
                Shape::Relativity(body, light) => {
                    numbers.extend([RELATIVITY, *body as f64, *light]);
                }
                Shape::Own(_) => return None,
            }
            match &field.centre {
                Centre::Fixed(centre) => {
                    numbers.push(0.0);
                    numbers.extend(centre);
                }
                Centre::Moving(path) => {
                    numbers.push(path.numbers().len() as f64);
                    numbers.extend(path.numbers());
                }
            }
        }
        Some(numbers)
    }

    /// The fields that these numbers stand for.
    pub(crate) fn of_numbers(numbers: &[f64]) -> Self {
        fn take<'a>(rest: &mut &'a [f64], count: usize) -> &'a [f64] {
            let (taken, left) = rest.split_at(count);
            *rest = left;
            taken
        }
        let mut fields = Self::NONE;
        let mut rest = numbers;
        while !rest.is_empty() {
            let code = take(&mut rest, 1)[0];
            if code == ORBIT {
                let of = take(&mut rest, 7);
                let orbit = Orbit::new([of[1], of[2], of[3]], [of[4], of[5], of[6]]);
                fields = fields.on_orbit(orbit.starting(of[0]));
                continue;
            }
            let shape = if code == RELATIVITY {
                let parameters = take(&mut rest, 2);
                Shape::Relativity(parameters[0] as usize, parameters[1])
            } else {
                let formula = FORMULAS[code as usize];
                let values = take(&mut rest, formula.parameters.len());
                Shape::Formula(formula, values.to_vec())
            };
            let centre = match take(&mut rest, 1)[0] as usize {
                0 => {
                    let centre = take(&mut rest, 3);
                    Centre::Fixed([centre[0], centre[1], centre[2]])
                }
                length => {
                    let numbers = take(&mut rest, length).to_vec();
                    Centre::Moving(Arc::new(Path::of_numbers(numbers)))
                }
            };
            fields.push(ExternalField { shape, centre });
        }
        fields
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::HostField;

    #[test]
    fn fields_come_back_from_their_numbers() {
        let path = Path::through(&[(0.0, [1.0, 2.0, 3.0]), (1.5, [4.0, 5.0, 6.0])]);
        let fields: Fields = [
            ExternalField::point(2.0).at([1.0, -1.0, 0.5]),
            ExternalField::first_post_newtonian(3, 299.0),
            ExternalField::logarithmic(1.0, 0.1, 0.9).along(path.expect("two knots")),
            ExternalField::tide(0.5, 0.6, 0.7),
        ]
        .into_iter()
        .collect();
        let orbit = Orbit::new([8.0, 0.0, 1.0], [0.0, 2.0, 3.0]).starting(-4.0);
        let fields = fields.on_orbit(orbit);
        let numbers = fields.to_numbers().expect("formulas");
        let back = Fields::of_numbers(&numbers);
        assert_eq!(format!("{back:?}"), format!("{fields:?}"));
        assert!(Fields::of_numbers(&[]).is_empty());
    }

    #[test]
    fn a_function_of_this_process_stays_here() {
        #[derive(Debug)]
        struct Own;
        impl HostField for Own {
            fn acceleration(&self, _: f64, position: [f64; 3]) -> [f64; 3] {
                position
            }
        }
        let fields: Fields = [ExternalField::own(Own)].into_iter().collect();
        assert_eq!(fields.to_numbers(), None);
    }
}
