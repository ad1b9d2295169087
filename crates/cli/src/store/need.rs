//! Which chunks of a store are to be made: all, or as many seeds of each point as a rule asks for.

use std::collections::HashMap;

use xoff_results::grid::directory::read_rows;
use xoff_results::grid::{metrics::Row, until::Rule};
use xoff_results::human;
use xoff_store::{Bucket, Error, record};

use super::Opened;

/// The object with the rule.
const OBJECT: &str = "until.txt";

/// What is known of the chunks.
pub struct Need<'a> {
    opened: &'a Opened,
    rule: Option<Rule>,
    /// With a rule: its metric in the runs of each chunk that was read.
    values: HashMap<usize, Vec<f64>>,
}

/// What is to be done.
#[derive(Default)]
pub struct Open {
    /// Chunks that can be made now. Of a point with a rule it is only the first one.
    pub chunks: Vec<usize>,
    pub done: Vec<usize>,
    /// Chunks that are not needed.
    pub spared: Vec<usize>,
    /// With a rule: points whose intervals are narrow enough, and points that have every seed and are still wide.
    pub narrow: usize,
    pub wide: Vec<usize>,
}

impl Open {
    /// Says that nothing is left to be made, and what the rule did.
    pub fn over(&self, rule: Option<&Rule>) -> String {
        let Some(rule) = rule else { return "every chunk is done".into() };
        let wide = match self.wide.len() {
            0 => String::new(),
            wide => format!("; {} more: it is wider with all seeds", human::counted(wide as u64, "point")),
        };
        let narrow = human::counted(self.narrow as u64, "point");
        format!("{} at {narrow}{wide}", rule.text())
    }
}

/// The rule of a store, if it has one.
pub fn rule(bucket: &Bucket) -> Result<Option<Rule>, Error> {
    let Some(text) = bucket.get(OBJECT)? else { return Ok(None) };
    let rule = Rule::parse(&String::from_utf8_lossy(&text));
    rule.map(Some).map_err(|why| bucket.error(OBJECT, format!("is damaged: {why}"), "remove that file"))
}

/// Gives a store a rule, which it keeps. Every worker follows it.
pub fn set_rule(opened: &Opened, rule: &Rule) -> Result<(), Error> {
    let bucket = &opened.bucket;
    if opened.layout.depth < opened.grid.axes.len() || opened.layout.per_group() < 2 {
        let help = "plan the grid into another store, with more seeds or with chunks of fewer runs, such as --chunk 5";
        let message = "has chunks with all seeds of a point: no rule can save any";
        return Err(bucket.error("", message, help));
    }
    bucket.put_new(OBJECT, rule.text().as_bytes())?;
    match self::rule(bucket)? {
        Some(there) if there != *rule => {
            let message = format!("has the rule `{}` already", there.text());
            Err(bucket.error("", message, "type that rule, or none"))
        }
        _ => Ok(()),
    }
}

impl<'a> Need<'a> {
    pub fn of(opened: &'a Opened) -> Result<Self, Error> {
        Ok(Self { opened, rule: rule(&opened.bucket)?, values: HashMap::new() })
    }

    pub fn rule(&self) -> Option<&Rule> {
        self.rule.as_ref()
    }

    /// Looks at the store.
    pub fn look(&mut self) -> Result<Open, Error> {
        let layout = &self.opened.layout;
        let mut done = vec![false; layout.chunks()];
        for name in record::done(&self.opened.bucket)? {
            if let Some(chunk) = name.parse::<usize>().ok().filter(|&chunk| chunk < done.len()) {
                done[chunk] = true;
            }
        }
        let mut open =
            Open { done: (0..done.len()).filter(|&chunk| done[chunk]).collect(), ..Open::default() };
        if self.rule.is_none() {
            open.chunks = (0..done.len()).filter(|&chunk| !done[chunk]).collect();
            return Ok(open);
        }
        let per_point = layout.per_group();
        for point in 0..done.len() / per_point {
            let all = point * per_point..(point + 1) * per_point;
            let mut values = Vec::new();
            let mut narrow = false;
            let mut chunk = all.start;
            while chunk < all.end && done[chunk] && !narrow {
                values.extend(self.values(chunk)?);
                narrow = self.rule.as_ref().is_some_and(|rule| rule.met(&values));
                chunk += 1;
            }
            if narrow {
                open.narrow += 1;
            } else if chunk == all.end {
                open.wide.push(point);
            } else {
                // Whether the next ones are needed is known afterwards.
                open.chunks.push(chunk);
                continue;
            }
            open.spared.extend((chunk..all.end).filter(|&chunk| !done[chunk]));
        }
        Ok(open)
    }

    fn values(&mut self, chunk: usize) -> Result<Vec<f64>, Error> {
        if let Some(known) = self.values.get(&chunk) {
            return Ok(known.clone());
        }
        let rule = self.rule.as_ref().expect("only with a rule");
        let rows = rows(self.opened, chunk)?;
        let found: Vec<f64> = rows.iter().filter_map(|(_, row)| rule.value(row)).collect();
        self.values.insert(chunk, found.clone());
        Ok(found)
    }
}

/// The runs of a chunk that is done, each with its position in the grid and its numbers.
pub fn rows(opened: &Opened, chunk: usize) -> Result<Vec<(usize, Row)>, Error> {
    let (bucket, name) = (&opened.bucket, opened.layout.name(chunk));
    let Some(done) = record::read(bucket, &name)? else { return Ok(Vec::new()) };
    let Some(part) = done.files.first() else { return Ok(Vec::new()) };
    let content = part.read(bucket, &name)?;
    read_rows(content).map_err(|why| bucket.error(&part.name, why, "start a worker of this version again"))
}
