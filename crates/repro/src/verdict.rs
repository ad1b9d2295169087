//! The judgement of a measurement over seeds against a paper's claim.
//!
//! The interval is the 95% confidence interval of the mean over seeds (Student's
//! t); of one seed, or of seeds that agree, it is the value. Noise never helps: the mean decides, and a wide
//! interval only leaves a claim undecided. See `docs/EXPERIMENTS.md`.

use serde::{Deserialize, Serialize};

use crate::experiment::{Combine, Side};
use xoff_results::grid::interval::{Interval, spread};

/// By how much of the effect a claimed range is widened at each end.
pub const WIDENED: f64 = 0.2;
/// Two values are similar if one is at most this part of the other above or below it.
pub const SIMILAR: f64 = 0.1;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The mean lies in the claimed range, widened once.
    Reproduced,
    /// The winner wins, by another margin.
    SameDirection,
    /// Runs are missing, or the interval is too wide to decide.
    Undecided,
    /// We measure the contrary.
    Contradicted,
    Analysis,
    /// Not simulated: about hardware, or an input of the scenario.
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
        low: Option<f64>,
        high: Option<f64>,
        /// Where neither of two wins; `None` if nothing is compared.
        neutral: Option<f64>,
        widening: Widening,
    },
    /// It lies on one side of where neither of two wins.
    Ordering { side: Side, neutral: f64 },
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Widening {
    /// Not: it is a bound (*at least*, *at most*), or a tolerance already.
    None,
    /// Each end by a fifth of the effect: of its distance to where neither of two wins, or else to 0.
    Effect,
    /// Each end by this part of itself.
    Ends(f64),
    /// The two are as large as each other: each end by [`SIMILAR`].
    Similar,
}

impl Widening {
    fn of(self, end: f64, neutral: Option<f64>) -> f64 {
        match self {
            Widening::None => 0.0,
            Widening::Effect => WIDENED * (end - neutral.unwrap_or(0.0)).abs(),
            Widening::Ends(part) => part * end.abs(),
            Widening::Similar => SIMILAR,
        }
    }
}

impl Test {
    /// Whether the mean lies in the range as it is printed; of an ordering, whether it is reproduced.
    pub fn as_printed(self, mean: f64, verdict: Verdict) -> bool {
        match self {
            Test::Ordering { .. } => verdict == Verdict::Reproduced,
            Test::Range { widening: Widening::Similar, .. } => verdict == Verdict::Reproduced,
            Test::Range { low, high, .. } => low.is_none_or(|l| mean >= l) && high.is_none_or(|h| mean <= h),
        }
    }

    /// Whether it is that something never happens (0 and no more). That is said
    /// of every run: no mean softens it, and one run contradicts it.
    pub fn of_every_run(self) -> bool {
        matches!(self, Test::Range { low: None | Some(0.0), high: Some(0.0), neutral: None, .. })
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
        Test::Range { low, high, neutral, widening } => {
            if test.of_every_run() {
                let fits = |&v: &f64| v <= 0.0 && (low.is_none() || v == 0.0);
                let all = values.iter().all(fits);
                return Some(if all { Verdict::Reproduced } else { Verdict::Contradicted });
            }
            let low = low.map(|l| l - widening.of(l, neutral));
            let high = high.map(|h| h + widening.of(h, neutral));
            let inside = low.is_none_or(|l| spread.mean >= l) && high.is_none_or(|h| spread.mean <= h);
            let side = neutral.and_then(|n| {
                let above = low.is_some_and(|l| l > n);
                let below = high.is_some_and(|h| h < n);
                let side = if above { Some(Side::Greater) } else { below.then_some(Side::Less) };
                side.map(|side| (side, n))
            });
            // An interval wider than the range says no more than that the mean is inside by chance.
            let narrow = low.zip(high).is_none_or(|(low, high)| to - from <= high - low);
            let reaches = low.is_none_or(|l| to >= l) && high.is_none_or(|h| from <= h);
            Some(match side {
                // It is not even known which value is larger.
                Some((_, n)) if from < n && to > n => Verdict::Undecided,
                Some((side, n)) if !all_on(side, n) => Verdict::Contradicted,
                Some(_) if inside => Verdict::Reproduced,
                Some(_) => Verdict::SameDirection,
                None if inside && narrow => Verdict::Reproduced,
                None if inside || reaches => Verdict::Undecided,
                None => Verdict::Contradicted,
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
    use super::Verdict::{Contradicted, Reproduced, SameDirection, Undecided};
    use super::*;

    /// A range that is widened by the effect.
    const fn range(low: f64, high: f64, neutral: Option<f64>) -> Test {
        Test::Range { low: Some(low), high: Some(high), neutral, widening: Widening::Effect }
    }

    /// One end, or a tolerance: not widened.
    const fn bound(low: Option<f64>, high: Option<f64>, neutral: Option<f64>) -> Test {
        Test::Range { low, high, neutral, widening: Widening::None }
    }

    fn judged(values: &[f64], test: Test) -> Verdict {
        judge(values, test).unwrap()
    }

    fn each(test: Test, cases: &[(f64, Verdict)]) {
        for &(value, verdict) in cases {
            assert_eq!(judged(&[value], test), verdict, "{value}");
        }
    }

    #[test]
    fn a_range_is_widened_by_a_fifth_of_the_effect() {
        // Six times as much is an effect of five: from 5 to 7.
        let six = range(6.0, 6.0, Some(1.0));
        each(six, &[(6.0, Reproduced), (5.01, Reproduced), (6.99, Reproduced)]);
        each(six, &[(4.99, SameDirection), (7.01, SameDirection), (1.01, SameDirection)]);
        each(six, &[(1.0, Contradicted), (0.5, Contradicted)]);
        // Half as much, an effect of a half: from 0.4 to 0.6.
        each(range(0.5, 0.5, Some(1.0)), &[(0.41, Reproduced), (0.59, Reproduced), (0.61, SameDirection)]);
        // 6.5% more: from 1.052 to 1.078.
        let more = range(1.065, 1.065, Some(1.0));
        each(
            more,
            &[(1.053, Reproduced), (1.05, SameDirection), (1.28, SameDirection), (0.99, Contradicted)],
        );
        // A reduction by 0.4: from 0.32 to 0.48; below 0 the other wins.
        each(range(0.4, 0.4, Some(0.0)), &[(0.33, Reproduced), (0.05, SameDirection), (-0.05, Contradicted)]);
        // The other wins a little: from -0.06 to -0.04.
        let worse = range(-0.05, -0.05, Some(0.0));
        each(worse, &[(-0.059, Reproduced), (-0.3, SameDirection), (0.01, Contradicted)]);
        // Nothing is compared: the value is the effect.
        each(range(30.0, 30.0, None), &[(24.1, Reproduced), (35.9, Reproduced), (36.1, Contradicted)]);
    }

    #[test]
    fn bounds_are_not_widened() {
        let at_least = bound(Some(2.0), None, Some(1.0));
        each(at_least, &[(100.0, Reproduced), (2.0, Reproduced), (1.99, SameDirection), (0.9, Contradicted)]);
        let at_most = bound(None, Some(10.0), None);
        each(at_most, &[(0.0, Reproduced), (10.0, Reproduced), (10.1, Contradicted)]);
        each(
            bound(None, Some(0.9), Some(1.0)),
            &[(0.1, Reproduced), (0.95, SameDirection), (1.05, Contradicted)],
        );
        // "Within 5%" is a tolerance, and says of no winner.
        let similar = bound(Some(0.95), Some(1.05), Some(1.0));
        each(similar, &[(0.96, Reproduced), (0.94, Contradicted), (1.06, Contradicted)]);
        let equal =
            Test::Range { low: Some(1.0), high: Some(1.0), neutral: Some(1.0), widening: Widening::Similar };
        each(equal, &[(0.91, Reproduced), (1.0, Reproduced), (0.89, Contradicted), (1.11, Contradicted)]);
        assert!(equal.as_printed(0.91, Reproduced) && !equal.as_printed(0.91, Undecided));
    }

    #[test]
    fn a_claim_of_our_own_has_its_factor() {
        let six = |part| Test::Range {
            low: Some(6.0),
            high: Some(6.0),
            neutral: None,
            widening: Widening::Ends(part),
        };
        each(six(0.15), &[(6.8, Reproduced), (7.0, Contradicted), (5.2, Reproduced)]);
        each(six(0.0), &[(6.1, Contradicted), (6.0, Reproduced)]);
    }

    /// Mean 4, standard deviation 3, three seeds: 4 ± 4.302653 · sqrt(3) = 4 ± 7.452.
    const NOISY: [f64; 3] = [4.0, 1.0, 7.0];

    #[test]
    fn noise_never_helps() {
        // The interval reaches the range, and the mean does not.
        assert_eq!(judged(&NOISY, bound(Some(11.0), None, None)), Undecided);
        assert_eq!(judged(&NOISY, bound(Some(11.5), None, None)), Contradicted);
        // The mean is inside, and the interval is wider than the range, which is 1.6 or 20 wide.
        assert_eq!(judged(&NOISY, range(4.0, 4.0, None)), Undecided);
        assert_eq!(judged(&NOISY, bound(Some(-6.0), Some(14.0), None)), Reproduced);
        // It excludes the opposite direction: 4 ± 2.484 of a quotient.
        assert_eq!(judged(&[4.0, 3.0, 5.0], range(4.0, 4.0, Some(1.0))), Reproduced);
        assert_eq!(judged(&[4.0, 3.0, 5.0], range(6.0, 6.0, Some(1.0))), SameDirection);
        assert_eq!(judged(&NOISY, range(4.0, 4.0, Some(1.0))), Undecided);
        // One seed has no interval; neither have seeds that agree.
        for seeds in [&[4.0][..], &[4.0; 5]] {
            assert_eq!(judged(seeds, bound(Some(4.1), None, None)), Contradicted);
            assert_eq!(judged(seeds, bound(Some(4.0), None, None)), Reproduced);
        }
    }

    #[test]
    fn seeds_on_both_sides_leave_the_order_undecided() {
        assert_eq!(judged(&NOISY, range(6.0, 6.0, Some(1.0))), Undecided);
        let less = Test::Ordering { side: Side::Less, neutral: 0.0 };
        assert_eq!(judged(&[-1.0, -1.1, -0.9], less), Reproduced);
        assert_eq!(judged(&[-1.0, 1.0, -3.0], less), Undecided);
        assert_eq!(judged(&[1.0, 1.1, 0.9], less), Contradicted);
        // Equal is not less.
        assert_eq!(judged(&[0.0, 0.0], less), Contradicted);
        assert_eq!(judged(&[2.0], Test::Ordering { side: Side::Greater, neutral: 1.0 }), Reproduced);
    }

    #[test]
    fn never_means_in_no_run() {
        let never = range(0.0, 0.0, None);
        assert_eq!(judged(&[0.0, 0.0, 0.0], never), Reproduced);
        let once: Vec<f64> = [0.0; 99].into_iter().chain([1.0]).collect();
        assert_eq!(judged(&once, never), Contradicted);
        each(bound(None, Some(0.0), None), &[(0.0, Reproduced), (1e-9, Contradicted)]);
    }

    #[test]
    fn the_printed_range_is_not_widened() {
        let six = range(6.0, 6.5, Some(1.0));
        for (mean, printed) in [(6.0, true), (6.5, true), (5.9, false), (6.6, false)] {
            assert_eq!(judged(&[mean], six), Reproduced);
            assert_eq!(six.as_printed(mean, Reproduced), printed, "{mean}");
        }
        let order = Test::Ordering { side: Side::Less, neutral: 0.0 };
        assert!(order.as_printed(-1.0, Reproduced) && !order.as_printed(-1.0, Undecided));
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
        assert_eq!(all([Reproduced, SameDirection]), SameDirection);
        assert_eq!(all([Reproduced, Undecided, SameDirection]), Undecided);
        assert_eq!(all([Contradicted, Undecided]), Contradicted);
        assert_eq!(all([]), Undecided);
        assert_eq!(judge(&[], range(0.0, 1.0, None)), None);
    }
}
