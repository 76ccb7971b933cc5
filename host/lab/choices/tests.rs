//! Tests of all variants together: variants of general use, and the rungs of the studies.

use allpairs::variants::{Masses, VARIANTS, find};
use gpu_kernels::entries::{self, Work};

use super::*;

#[test]
fn names_are_unique_and_canonical() {
    let listed: Vec<_> = catalogue().all().collect();
    for (i, v) in listed.iter().enumerate() {
        assert!(listed[..i].iter().all(|w| w.name != v.name), "{}", v.name);
        assert!(
            v.name
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-/".contains(c))
        );
        assert!(
            !v.summary.is_empty() && !v.summary.ends_with('.'),
            "{}",
            v.name
        );
    }
}

#[test]
fn a_variant_differs_from_its_predecessor_in_one_choice() {
    for (i, v) in VARIANTS.iter().enumerate() {
        let Some(predecessor) = v.predecessor else {
            continue;
        };
        assert!(
            VARIANTS[..i].iter().any(|w| w.name == predecessor),
            "{} comes first",
            v.name
        );
        let (before, after) = (choices(find(predecessor).expect("listed")), choices(v));
        assert_eq!(before.len(), after.len(), "{}", v.name);
        let changed = after
            .iter()
            .filter(|choice| !before.contains(choice))
            .count();
        assert_eq!(changed, 1, "{} and {predecessor}", v.name);
    }
}

#[test]
fn every_force_kernel_is_offered() {
    for entry in entries::all() {
        let Work::Force { law, numerics, .. } = entry.work else {
            continue;
        };
        let offered = catalogue()
            .all()
            .flat_map(|v| v.laws().map(move |law| (v, law)))
            .filter(|(_, l)| l.of_kernels() == law)
            .flat_map(|(v, l)| Masses::KINDS.map(|masses| (v, l, masses)))
            .filter_map(|(v, l, masses)| v.force_for(l, numerics.unsoftened, masses))
            .any(|force| force.symbol == entry.symbol);
        assert!(offered, "no variant runs {}", entry.symbol);
    }
}
