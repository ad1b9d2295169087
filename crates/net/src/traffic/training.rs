//! Training steps of a large model, as its ranks run them: pipeline stages with one forward and one backward
//! in turn (1F1B; Narayanan et al., PipeDream-Flush, ICML 2021; Megatron-LM, SC 2021, §2.2), tensor and expert
//! parallel groups in each layer, data parallel groups at the end of a step.

use super::program::{Members, Node, Pattern, Program, Work};
use crate::error::SpecError;
use xoff_kernel::time::{SECOND, Time};

/// A model, how it is spread over ranks, and how long its parts compute.
#[derive(Clone, Copy, Debug)]
pub struct Training {
    /// Layers of the model; a multiple of `pipeline`.
    pub layers: u32,
    /// Elements of a token's activation.
    pub hidden: u64,
    /// Tokens of a sequence.
    pub sequence: u64,
    /// Sequences of a micro-batch.
    pub micro_batch: u64,
    /// Micro-batches of a pipeline in a step.
    pub micro_batches: u32,
    /// Parameters of the model outside of its experts.
    pub parameters: u64,
    /// Parameters of all experts of the model.
    pub expert_parameters: u64,
    /// Bytes of an element of an activation, or of a parameter.
    pub element: u64,
    /// Bytes of an element of a gradient.
    pub gradient: u64,
    pub tensor: u32,
    pub pipeline: u32,
    pub data: u32,
    /// Ranks that the experts of a layer are spread over; divides `data`. 1: no experts.
    pub expert: u32,
    pub experts_per_token: u64,
    /// Bits per second of a GPU inside its server. With it a rank is a server with the GPUs of a tensor group;
    /// without, a rank is a GPU.
    pub scale_up: Option<u64>,
    /// A micro-batch's forward and backward computation at one stage.
    pub forward: Time,
    pub backward: Time,
    /// Training steps.
    pub steps: u32,
    /// The optimizer's computation in a step.
    pub optimizer: Time,
}

/// Bytes of a group's collective inside a server, as time on its links: each of `n` sends 2(n − 1)/n of them.
fn inside(bytes: u64, n: u64, rate: u64) -> Time {
    let bits = u128::from(bytes) * 16 * u128::from(n - 1) / u128::from(n);
    Time::try_from(bits.saturating_mul(SECOND.into()).div_ceil(rate.into())).unwrap_or(Time::MAX)
}

impl Training {
    /// Ranks of a tensor group: 1 where it is inside a server.
    fn wide(&self) -> u32 {
        if self.scale_up.is_some() { 1 } else { self.tensor }
    }

    /// GPUs behind a rank.
    fn deep(&self) -> u64 {
        if self.scale_up.is_some() { u64::from(self.tensor) } else { 1 }
    }

    /// How many ranks it has.
    pub fn ranks(&self) -> u64 {
        u64::from(self.wide()) * u64::from(self.pipeline) * u64::from(self.data)
    }

    /// Bytes of the activations of a micro-batch between two layers: batch, sequence, hidden, element.
    pub fn activations(&self) -> u64 {
        self.micro_batch
            .saturating_mul(self.sequence)
            .saturating_mul(self.hidden)
            .saturating_mul(self.element)
    }

    /// Time of a tensor group's all-reduce inside a server.
    pub fn inside(&self) -> Time {
        match self.scale_up {
            Some(rate) if self.tensor > 1 => inside(self.activations(), self.tensor.into(), rate),
            _ => 0,
        }
    }

    /// About how many nodes its program has.
    pub fn nodes(&self) -> f64 {
        let halves = 2.0 * f64::from(self.layers) / f64::from(self.pipeline.max(1));
        let pass = 2.0 + 3.0 * halves;
        self.ranks() as f64 * f64::from(self.steps) * 2.0 * f64::from(self.micro_batches) * pass
    }

    fn rank(&self, stage: u32, data: u32, tensor: u32) -> u32 {
        (stage * self.data + data) * self.wide() + tensor
    }

    /// What each rank does. Ranks of a tensor group are neighbours, then those of expert and data groups, then
    /// the stages.
    ///
    /// # Errors
    ///
    /// A number that does not divide another; the key is the one to change.
    pub fn program(&self) -> Result<Program, SpecError> {
        for (key, value) in [
            ("layers", u64::from(self.layers)),
            ("hidden", self.hidden),
            ("sequence", self.sequence),
            ("micro_batch", self.micro_batch),
            ("micro_batches", u64::from(self.micro_batches)),
            ("parameters", self.parameters),
            ("tensor", u64::from(self.tensor)),
            ("pipeline", u64::from(self.pipeline)),
            ("data", u64::from(self.data)),
            ("expert", u64::from(self.expert)),
            ("experts_per_token", self.experts_per_token),
            ("steps", u64::from(self.steps)),
        ] {
            if value == 0 {
                let message = format!("{key} = 0 is out of range");
                return Err(SpecError::new(key, message, "write a whole number, 1 or more"));
            }
        }
        let divides = |key: &str, by: u32, what: &str, of: u32| {
            if of.is_multiple_of(by) {
                return Ok(());
            }
            let message = format!("{what} cannot be divided by {key} = {by}");
            Err(SpecError::new(key, message, format!("write a divisor of {of}")))
        };
        divides("pipeline", self.pipeline, &format!("{} layers", self.layers), self.layers)?;
        divides("expert", self.expert, &format!("{} data-parallel ranks", self.data), self.data)?;
        let mut program = Program { ranks: Vec::new(), groups: Vec::new() };
        let groups = Groups::new(self, &mut program);
        for stage in 0..self.pipeline {
            for data in 0..self.data {
                for tensor in 0..self.wide() {
                    let mut rank =
                        Rank { training: self, stage, data, tensor, groups: &groups, nodes: Vec::new() };
                    for step in 0..self.steps {
                        rank.step(step);
                    }
                    program.ranks.push(rank.nodes);
                }
            }
        }
        Ok(program)
    }
}

/// The first group of each kind, in the program's list.
struct Groups {
    tensor: u32,
    expert: u32,
    data: u32,
    expert_data: u32,
}

impl Groups {
    fn new(of: &Training, program: &mut Program) -> Self {
        let (data, expert) = (of.data, of.expert);
        let mut kind = |name: &str, groups: Vec<Vec<u32>>| {
            let first = program.groups.len() as u32;
            program.groups.extend(groups.into_iter().map(|ranks| Members { name: name.into(), ranks }));
            first
        };
        let places = |depth: u32| (0..of.pipeline).flat_map(move |stage| (0..depth).map(move |i| (stage, i)));
        let tensor = places(data)
            .map(|(stage, data)| (0..of.wide()).map(|t| of.rank(stage, data, t)).collect())
            .collect();
        let experts = places(data / expert * of.wide())
            .map(|(stage, i)| {
                let (block, t) = (i / of.wide(), i % of.wide());
                (0..expert).map(|e| of.rank(stage, block * expert + e, t)).collect()
            })
            .collect();
        let replicas =
            places(of.wide()).map(|(stage, t)| (0..data).map(|d| of.rank(stage, d, t)).collect()).collect();
        let expert_replicas = places(expert * of.wide())
            .map(|(stage, i)| {
                let (e, t) = (i / of.wide(), i % of.wide());
                (0..data / expert).map(|block| of.rank(stage, block * expert + e, t)).collect()
            })
            .collect();
        Self {
            tensor: kind("tensor", tensor),
            expert: kind("expert", experts),
            data: kind("data", replicas),
            expert_data: kind("expert data", expert_replicas),
        }
    }
}

/// The program of one rank, as it grows: each node after the one before.
struct Rank<'t> {
    training: &'t Training,
    stage: u32,
    data: u32,
    tensor: u32,
    groups: &'t Groups,
    nodes: Vec<Node>,
}

impl Rank<'_> {
    fn push(&mut self, work: Work) {
        let after = self.nodes.len().checked_sub(1).map(|last| last as u32).into_iter().collect();
        self.nodes.push(Node { after, work });
    }

    fn compute(&mut self, time: Time) {
        if time > 0 {
            self.push(Work::Compute(time));
        }
    }

    /// A group of one has nothing to exchange.
    fn collective(&mut self, members: u32, pattern: Pattern, group: u32, size: u64) {
        if members > 1 && size > 0 {
            self.push(Work::Collective { pattern, group, size });
        }
    }

    /// The tag of a micro-batch's message between stages, in a step.
    fn tag(&self, step: u32, micro_batch: u32, backward: bool) -> u64 {
        (u64::from(step) * u64::from(self.training.micro_batches) + u64::from(micro_batch)) * 2
            + u64::from(backward)
    }

    /// One F one B: as many forwards first as there are stages behind, then a forward and a backward in turn, then the
    /// backwards that are left.
    fn step(&mut self, step: u32) {
        let t = self.training;
        let warm = (t.pipeline - 1 - self.stage).min(t.micro_batches);
        for micro_batch in 0..warm {
            self.pass(step, micro_batch, false);
        }
        for micro_batch in warm..t.micro_batches {
            self.pass(step, micro_batch, false);
            self.pass(step, micro_batch - warm, true);
        }
        for micro_batch in t.micro_batches - warm..t.micro_batches {
            self.pass(step, micro_batch, true);
        }
        // Each GPU has its share of its stage's parameters.
        let stages = u64::from(t.pipeline);
        let shared = t.parameters / stages / u64::from(t.tensor) * t.deep();
        let own = t.expert_parameters / stages / u64::from(t.tensor) / u64::from(t.expert) * t.deep();
        let (blocks, wide) = (t.data / t.expert, t.wide());
        let all = self.groups.data + self.stage * wide + self.tensor;
        let same =
            self.groups.expert_data + (self.stage * t.expert + self.data % t.expert) * wide + self.tensor;
        let groups = [(t.data, all, shared), (blocks, same, own)];
        for (members, group, parameters) in groups {
            self.collective(members, Pattern::ReduceScatter, group, parameters.saturating_mul(t.gradient));
        }
        self.compute(t.optimizer);
        for (members, group, parameters) in groups {
            self.collective(members, Pattern::AllGather, group, parameters.saturating_mul(t.element));
        }
        self.push(Work::Iteration(step));
    }

    /// The forward or backward of a micro-batch at this stage.
    fn pass(&mut self, step: u32, micro_batch: u32, backward: bool) {
        let t = self.training;
        let (first, last) = (self.stage == 0, self.stage + 1 == t.pipeline);
        let tag = self.tag(step, micro_batch, backward);
        let (before, behind) = (self.stage.wrapping_sub(1), self.stage + 1);
        let (from, to) = if backward { (behind, before) } else { (before, behind) };
        let (has_from, has_to) = if backward { (!last, !first) } else { (!first, !last) };
        let other = |stage| t.rank(stage, self.data, self.tensor);
        let (from, to) = (has_from.then(|| other(from)), has_to.then(|| other(to)));
        if let Some(from) = from {
            self.push(Work::Receive { from, tag });
        }
        self.layers(if backward { t.backward } else { t.forward });
        if let Some(to) = to {
            let size = t.activations() / u64::from(t.tensor) * t.deep();
            self.push(Work::Send { to, size, tag });
        }
    }

    /// The layers of the stage: each is an attention and a feed-forward half, with an all-reduce of the tensor group
    /// after each; experts have their tokens sent to them, and back, around the second half.
    fn layers(&mut self, time: Time) {
        let t = self.training;
        let halves = u64::from(t.layers / t.pipeline) * 2;
        let tensor = self.groups.tensor + self.stage * t.data + self.data;
        let expert = self.groups.expert
            + (self.stage * (t.data / t.expert) + self.data / t.expert) * t.wide()
            + self.tensor;
        // Each GPU of a tensor group sends its share of the tokens.
        let tokens = t.activations().saturating_mul(t.experts_per_token) / u64::from(t.tensor) * t.deep();
        let mut computed = 0;
        for half in 0..halves {
            if half % 2 == 1 {
                self.collective(t.expert, Pattern::AllToAll, expert, tokens);
            }
            let until = (u128::from(time) * u128::from(half + 1) / u128::from(halves)) as Time;
            let exchange = t.inside();
            self.compute((until - computed).saturating_add(exchange));
            computed = until;
            self.collective(t.wide(), Pattern::AllReduce, tensor, t.activations());
            if half % 2 == 1 {
                self.collective(t.expert, Pattern::AllToAll, expert, tokens);
            }
        }
    }
}
