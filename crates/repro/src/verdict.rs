//! The judgement of a measurement over seeds against a paper's claim.
//!
//! The interval is the 95% confidence interval of the mean over seeds (Student's
//! t); of one seed, or of seeds that agree, it is the value. Claimed ranges are
//! widened by a fifth of their ends. See `docs/EXPERIMENTS.md`.

use serde::{Deserialize, Serialize};

use crate::experiment::{Combine, Side};
use xoff_results::grid::interval::{Interval, spread};

/// By how much of itself each end of a claimed range is moved outwards, where a
/// claim of our own does not say it.
pub const WIDENED: f64 = 0.2;

/// The verdict on a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The interval overlaps the claimed range, widened by 20%.
    Reproduced,
    /// The winner wins, by another margin.
    SameDirection,
    /// Runs are missing, or the seeds are on both sides of the decisive value.
    Undecided,
    /// We measure the contrary.
    Contradicted,
    Analysis,
    /// Not simulated: about hardware.
    NotSimulated,
    /// Something is missing yet.
    NotYet,
}

impl Verdict {
    /// All, in the order in which they are counted.
    pub const ALL: [Verdict; 7] = [
        Verdict::Reproduced,
        Verdict::SameDirection,
        Verdict::Undecided,
        Verdict::Contradicted,
        Verdict::Analysis,
        Verdict::NotSimulated,
        Verdict::NotYet,
    ];

    /// As people read it.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Reproduced => "reproduced",
            Verdict::SameDirection => "same direction",
            Verdict::Undecided => "undecided",
            Verdict::Contradicted => "contradicted",
            Verdict::Analysis => "by analysis",
            Verdict::NotSimulated => "not simulated",
            Verdict::NotYet => "not yet",
        }
    }
}

/// The target of a measured number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Test {
    /// It lies in a range; an end that is `None` is open.
    Range {
        /// The least that is claimed.
        low: Option<f64>,
        /// The most that is claimed.
        high: Option<f64>,
        /// Where neither of two wins; `None` if nothing is compared.
        neutral: Option<f64>,
        /// By how much of itself each end is moved outwards.
        widened: f64,
    },
    /// It lies on one side of where neither of two wins.
    Ordering { side: Side, neutral: f64 },
}

impl Test {
    /// Whether it is that something never happens (0 and no more). That is said
    /// of every run: no mean softens it, and one run contradicts it.
    pub fn of_every_run(self) -> bool {
        match self {
            Test::Range { low, high, neutral, .. } => {
                high == Some(0.0) && neutral.is_none() && low.is_none_or(|l| l == 0.0)
            }
            Test::Ordering { .. } => false,
        }
    }
}

impl Combine {
    /// The number, if there is one: nothing is divided by zero.
    pub fn of(self, a: f64, b: Option<f64>) -> Option<f64> {
        let quotient = || b.filter(|&b| b != 0.0).map(|b| a / b);
        match self {
            Combine::Value => Some(a),
            Combine::Ratio => quotient(),
            Combine::Reduction => quotient().map(|q| 1.0 - q),
            Combine::Gain => quotient().map(|q| q - 1.0),
            Combine::Difference => b.map(|b| a - b),
        }
    }

    /// Where neither of two wins.
    pub fn neutral(self) -> Option<f64> {
        match self {
            Combine::Value => None,
            Combine::Ratio => Some(1.0),
            Combine::Reduction | Combine::Gain | Combine::Difference => Some(0.0),
        }
    }
}

/// Judges the values of the seeds; `None` if there are none.
pub fn judge(values: &[f64], test: Test) -> Option<Verdict> {
    let spread = spread(values, Interval::Ci95)?;
    let (from, to) = (spread.low.unwrap_or(spread.mean), spread.high.unwrap_or(spread.mean));
    let all_on = |side: Side, neutral: f64| match side {
        Side::Less => to < neutral,
        Side::Greater => from > neutral,
    };
    match test {
        Test::Ordering { side, neutral } => Some(if all_on(side, neutral) {
            Verdict::Reproduced
        } else if from < neutral && to > neutral {
            Verdict::Undecided
        } else {
            Verdict::Contradicted
        }),
        Test::Range { low, high, neutral, widened } => {
            if test.of_every_run() {
                let fits = |&v: &f64| v <= 0.0 && (low.is_none() || v == 0.0);
                let all = values.iter().all(fits);
                return Some(if all { Verdict::Reproduced } else { Verdict::Contradicted });
            }
            let side = neutral.and_then(|n| {
                let above = low.is_some_and(|l| l > n);
                let below = high.is_some_and(|h| h < n);
                let side = if above { Some(Side::Greater) } else { below.then_some(Side::Less) };
                side.map(|side| (side, n))
            });
            let overlaps = low.is_none_or(|l| to >= l - widened * l.abs())
                && high.is_none_or(|h| from <= h + widened * h.abs());
            Some(match side {
                // It is not even known which value is larger.
                Some((_, n)) if from < n && to > n => Verdict::Undecided,
                // A range near neutral may reach beyond it once it is widened: no
                // margin makes up for another winner, or for none.
                Some((Side::Less, n)) if from >= n => Verdict::Contradicted,
                Some((Side::Greater, n)) if to <= n => Verdict::Contradicted,
                _ if overlaps => Verdict::Reproduced,
                Some((side, n)) if all_on(side, n) => Verdict::SameDirection,
                _ => Verdict::Contradicted,
            })
        }
    }
}

/// The verdict over several measurements of one claim: all must hold. A contradiction decides first, then an
/// unknown value.
pub fn all(verdicts: impl IntoIterator<Item = Verdict>) -> Verdict {
    verdicts.into_iter().max().unwrap_or(Verdict::Undecided)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn range(low: f64, high: f64, neutral: Option<f64>) -> Test {
        Test::Range { low: Some(low), high: Some(high), neutral, widened: WIDENED }
    }

    fn judged(values: &[f64], test: Test) -> Verdict {
        judge(values, test).unwrap()
    }

    #[test]
    fn a_range_is_widened_by_a_fifth_and_no_more() {
        // 6 times: from 4.8 to 7.2.
        let six = range(6.0, 6.0, Some(1.0));
        for (value, verdict) in [
            (6.0, Verdict::Reproduced),
            (4.81, Verdict::Reproduced),
            (7.19, Verdict::Reproduced),
            (4.79, Verdict::SameDirection),
            (7.21, Verdict::SameDirection),
            (1.01, Verdict::SameDirection),
            (1.0, Verdict::Contradicted),
            (0.5, Verdict::Contradicted),
        ] {
            assert_eq!(judged(&[value], six), verdict, "{value}");
        }
        // A reduction by 0.4: from 0.32 to 0.48; below 0 the other wins.
        let less = range(0.4, 0.4, Some(0.0));
        assert_eq!(judged(&[0.33], less), Verdict::Reproduced);
        assert_eq!(judged(&[0.05], less), Verdict::SameDirection);
        assert_eq!(judged(&[-0.05], less), Verdict::Contradicted);
        // A claim that the other wins a little: -0.05 is widened to -0.06 .. -0.04.
        let worse = range(-0.05, -0.05, Some(0.0));
        assert_eq!(judged(&[-0.059], worse), Verdict::Reproduced);
        assert_eq!(judged(&[-0.3], worse), Verdict::SameDirection);
        assert_eq!(judged(&[0.01], worse), Verdict::Contradicted);
    }

    #[test]
    fn a_claim_of_our_own_has_its_factor() {
        let within =
            |part: f64| Test::Range { low: Some(6.0), high: Some(6.0), neutral: None, widened: part };
        assert_eq!(judged(&[6.8], within(0.15)), Verdict::Reproduced);
        assert_eq!(judged(&[7.0], within(0.15)), Verdict::Contradicted);
        assert_eq!(judged(&[5.2], within(0.15)), Verdict::Reproduced);
        assert_eq!(judged(&[6.1], within(0.0)), Verdict::Contradicted);
        assert_eq!(judged(&[6.0], within(0.0)), Verdict::Reproduced);
    }

    #[test]
    fn a_widened_range_does_not_change_the_winner() {
        // 1.0651 is widened to 0.852, where the other one wins.
        let more = range(1.0651, 1.0651, Some(1.0));
        for (values, verdict) in [
            (&[1.01][..], Verdict::Reproduced),
            (&[1.0], Verdict::Contradicted),
            (&[0.90], Verdict::Contradicted),
            (&[0.90, 0.91, 0.89], Verdict::Contradicted),
            // 1 ± 2.484: who wins is not known.
            (&[1.0, 2.0, 0.0], Verdict::Undecided),
        ] {
            assert_eq!(judged(values, more), verdict, "{values:?}");
        }
        // A range on no side of 1 says of no winner.
        assert_eq!(judged(&[0.9], range(0.95, 1.05, Some(1.0))), Verdict::Reproduced);
    }

    #[test]
    fn nor_does_one_below_neutral() {
        // 0.9 is widened to 1.08.
        let less = range(0.9, 0.9, Some(1.0));
        for (value, verdict) in [
            (0.99, Verdict::Reproduced),
            (0.5, Verdict::SameDirection),
            (1.0, Verdict::Contradicted),
            (1.05, Verdict::Contradicted),
        ] {
            assert_eq!(judged(&[value], less), verdict, "{value}");
        }
        let at_most = Test::Range { low: None, high: Some(0.9), neutral: Some(1.0), widened: WIDENED };
        assert_eq!(judged(&[1.05], at_most), Verdict::Contradicted);
        assert_eq!(judged(&[0.1], at_most), Verdict::Reproduced);
    }

    #[test]
    fn open_ends_are_open() {
        let at_least = Test::Range { low: Some(2.0), high: None, neutral: Some(1.0), widened: WIDENED };
        assert_eq!(judged(&[100.0], at_least), Verdict::Reproduced);
        assert_eq!(judged(&[1.6], at_least), Verdict::Reproduced);
        assert_eq!(judged(&[1.59], at_least), Verdict::SameDirection);
        assert_eq!(judged(&[0.9], at_least), Verdict::Contradicted);
        let at_most = Test::Range { low: None, high: Some(10.0), neutral: None, widened: WIDENED };
        assert_eq!(judged(&[0.0], at_most), Verdict::Reproduced);
        assert_eq!(judged(&[12.0], at_most), Verdict::Reproduced);
        assert_eq!(judged(&[12.1], at_most), Verdict::Contradicted, "nothing is compared");
    }

    #[test]
    fn the_interval_over_seeds_may_reach_the_range() {
        // Mean 4, standard deviation 3, three seeds: 4 ± 4.302653 · sqrt(3) = 4 ± 7.452.
        let seeds = [4.0, 1.0, 7.0];
        let value = |low: f64| Test::Range { low: Some(low), high: None, neutral: None, widened: WIDENED };
        assert_eq!(judged(&seeds, value(11.4 / 0.8)), Verdict::Reproduced);
        assert_eq!(judged(&seeds, value(11.5 / 0.8)), Verdict::Contradicted);
        // One seed has no interval; neither have seeds that agree.
        assert_eq!(judged(&[4.0], value(5.1)), Verdict::Contradicted);
        assert_eq!(judged(&[4.0; 5], value(5.1)), Verdict::Contradicted);
        assert_eq!(judged(&[4.0; 5], value(5.0)), Verdict::Reproduced);
    }

    #[test]
    fn seeds_on_both_sides_leave_the_order_undecided() {
        // 4 ± 7.452 of a quotient that is claimed to be 6: less than 1 is possible.
        assert_eq!(judged(&[4.0, 1.0, 7.0], range(6.0, 6.0, Some(1.0))), Verdict::Undecided);
        let less = Test::Ordering { side: Side::Less, neutral: 0.0 };
        assert_eq!(judged(&[-1.0, -1.1, -0.9], less), Verdict::Reproduced);
        assert_eq!(judged(&[-1.0, 1.0, -3.0], less), Verdict::Undecided);
        assert_eq!(judged(&[1.0, 1.1, 0.9], less), Verdict::Contradicted);
        // Equal is not less.
        assert_eq!(judged(&[0.0, 0.0], less), Verdict::Contradicted);
        assert_eq!(judged(&[2.0], Test::Ordering { side: Side::Greater, neutral: 1.0 }), Verdict::Reproduced);
    }

    #[test]
    fn never_means_in_no_run() {
        let never = range(0.0, 0.0, None);
        assert_eq!(judged(&[0.0, 0.0, 0.0], never), Verdict::Reproduced);
        assert_eq!(
            judged(&[0.0; 99].iter().chain(&[1.0]).copied().collect::<Vec<_>>(), never),
            Verdict::Contradicted
        );
        let at_most = Test::Range { low: None, high: Some(0.0), neutral: None, widened: WIDENED };
        assert_eq!(judged(&[0.0], at_most), Verdict::Reproduced);
        assert_eq!(judged(&[1e-9], at_most), Verdict::Contradicted);
    }

    #[test]
    fn combinations_by_hand() {
        assert_eq!(Combine::Value.of(3.0, None), Some(3.0));
        assert_eq!(Combine::Ratio.of(3.0, Some(2.0)), Some(1.5));
        assert_eq!(Combine::Reduction.of(3.0, Some(4.0)), Some(0.25));
        assert_eq!(Combine::Gain.of(3.0, Some(2.0)), Some(0.5));
        assert_eq!(Combine::Difference.of(3.0, Some(0.0)), Some(3.0));
        for c in [Combine::Ratio, Combine::Reduction, Combine::Gain] {
            assert_eq!((c.of(3.0, Some(0.0)), c.of(3.0, None)), (None, None));
        }
        assert_eq!(Combine::Difference.of(3.0, None), None);
    }

    #[test]
    fn the_worst_of_several_decides() {
        use Verdict::{Contradicted, Reproduced, SameDirection, Undecided};
        assert_eq!(all([Reproduced, SameDirection]), SameDirection);
        assert_eq!(all([Reproduced, Undecided, SameDirection]), Undecided);
        assert_eq!(all([Contradicted, Undecided]), Contradicted);
        assert_eq!(all([]), Undecided);
        assert_eq!(judge(&[], range(0.0, 1.0, None)), None);
    }
}
