//! Combinations of features, places and kernels that are refused, each with advice that removes the
//! refusal.
//!
//! Each combination that cannot be is one [`Rule`] of the [`RULES`]. [`check`] finds all that apply,
//! before a device is opened. A missing GPU, too little memory or a number that makes no sense is no
//! combination, and an error of the part that finds it.

mod needs;
mod table;
#[cfg(test)]
mod tests;
mod together;

pub use needs::{EncounterNeeds, FieldNeeds, Needs, Offer, Processor};
pub use table::RULES;
pub use together::together;

use crate::refusals::{Refusal, Refusals, Remedy};

/// A combination that is refused.
#[derive(Debug)]
pub struct Rule {
    /// The two sides that do not go together, in a few words.
    pub sides: [&'static str; 2],
    applies: fn(&Needs, &Offer<'_>) -> bool,
    reason: fn(&Needs, &Offer<'_>) -> String,
    remedies: fn(&Needs, &Offer<'_>) -> Vec<Remedy>,
}

/// Every refusal of these needs on this offer.
pub fn refusals(needs: &Needs, offer: &Offer<'_>) -> Vec<Refusal> {
    let broken = RULES.iter().filter(|rule| (rule.applies)(needs, offer));
    broken
        .map(|rule| Refusal {
            sides: rule.sides,
            reason: (rule.reason)(needs, offer),
            remedies: (rule.remedies)(needs, offer),
        })
        .collect()
}

/// Reason why pairs and multiples cannot be followed apart in a run with these needs on this offer.
pub(crate) fn refusal_of_groups(needs: &Needs, offer: &Offer<'_>) -> Option<String> {
    let refusals = refusals(&needs.with_groups(), offer).into_iter();
    let mut of_groups = refusals.filter(|refusal| refusal.sides[0] == table::GROUPS);
    of_groups.next().map(|refusal| refusal.reason)
}

/// Checks that no rule refuses these needs on this offer.
///
/// # Errors
/// All refusals.
pub fn check(needs: &Needs, offer: &Offer<'_>) -> Result<(), Refusals> {
    match refusals(needs, offer) {
        none if none.is_empty() => Ok(()),
        some => Err(Refusals(some)),
    }
}
