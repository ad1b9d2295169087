use super::frame::Word;
use super::*;

const LIMITS: Limits = Limits {
    bytes: 4_000,
    frames: 10,
    largest: 1_000,
    timer: 1,
    replays: Some(3),
    spacing: 0,
    processing: 0,
    headroom: 0,
};

/// The bytes of an ordered set: the control character, the type, the number, the O-code in byte 4.
#[test]
fn words_have_these_bytes() {
    assert_eq!(Word::Nack(0xabcde).emit(), [0x5c, 0x02, 0xab, 0xcd, 0xe6, 0, 0, 0]);
    let captured = Word::Nack(0xabcde).captured();
    assert_eq!(captured[12..24], [0x88, 0xb5, 12, 0x5c, 0x02, 0xab, 0xcd, 0xe6, 0, 0, 0, 0]);
    for word in [Word::Ack(0), Word::Nack(MASK), Word::Init(77), Word::Echo(1)] {
        assert_eq!(Word::parse(&word.emit()), Some(word));
        assert_eq!(Word::from_code(word.code()), Some(word));
    }
    assert_eq!(Word::parse(&[0x5c, 0x10, 0, 0, 6, 0, 0, 0]), None);
    assert_eq!(Word::parse(&[0x5c, 0x01, 0, 0, 7, 0, 0, 0]), None);
    assert_eq!(Word::parse(&[0x5c, 0x01, 0, 0]), None);
}

/// The bytes of the buffer stop new frames, and an ACK lets them go on.
#[test]
fn a_full_buffer_stops_new_frames() {
    let mut tx = Transmitter::default();
    for expected in 0..4 {
        assert!(tx.may_send(&LIMITS));
        assert_eq!(tx.send(1_000), expected);
    }
    assert!(!tx.may_send(&LIMITS));
    assert_eq!((tx.on_ack(0), tx.may_send(&LIMITS)), (1, true));
    // Small frames reach the limit of frames instead.
    let (mut tx, limits) = (Transmitter::default(), Limits { bytes: 1 << 20, ..LIMITS });
    for _ in 0..10 {
        tx.send(64);
    }
    assert!(!tx.may_send(&limits));
}

/// 1,000 frames, the 901st of which has a bad check sequence: one NACK that names the 900th, one replay, all
/// frames delivered. (The first number is 0 here, so the NACK names 899.)
#[test]
fn one_bad_frame_of_a_thousand() {
    let (mut tx, mut rx) = (Transmitter::default(), Receiver::default());
    let mut good = 0;
    let numbers: Vec<u32> = (0..1_000).map(|_| tx.send(64)).collect();
    for number in numbers {
        good += u32::from(rx.on_frame(number, number != 900) == Verdict::Accept);
    }
    assert_eq!((good, rx.word()), (900, Some(Word::Nack(899))));
    assert_eq!(rx.word(), None);
    assert_eq!(tx.on_nack(899), 900);
    let mut again = 0;
    while let Some((_, number, _)) = tx.replay() {
        assert_eq!(rx.on_frame(number, true), Verdict::Accept);
        again += 1;
    }
    assert_eq!((again, rx.word()), (100, Some(Word::Ack(999))));
    assert_eq!((tx.on_ack(999), tx.is_busy()), (100, false));
}

/// Ten frames outstanding, a limit of three replays, no ACK ever: 40 frames arrive, 30 of them duplicates, and the
/// transmitter gives up.
#[test]
fn without_acks_a_transmitter_gives_up_after_its_last_replay() {
    let (mut tx, mut rx) = (Transmitter::default(), Receiver::default());
    let mut verdicts: Vec<Verdict> = (0..10).map(|_| rx.on_frame(tx.send(100), true)).collect();
    for _ in 0..3 {
        assert_eq!(tx.on_timeout(&LIMITS), Timeout::Replay);
        while let Some((_, number, _)) = tx.replay() {
            verdicts.push(rx.on_frame(number, true));
        }
    }
    assert_eq!(tx.on_timeout(&LIMITS), Timeout::Flush(10));
    let of = |verdict| verdicts.iter().filter(|v| **v == verdict).count();
    assert_eq!((verdicts.len(), of(Verdict::Accept), of(Verdict::Duplicate)), (40, 10, 30));
    // It begins anew at the next number, once the other end has heard of it.
    assert!(!tx.may_send(&LIMITS));
    let Some(Word::Init(number)) = tx.asks() else { panic!("INIT") };
    assert_eq!((number, tx.on_timeout(&LIMITS)), (10, Timeout::Init));
    rx.on_init(number);
    assert_eq!(rx.word(), Some(Word::Echo(10)));
    tx.on_echo(9);
    assert!(!tx.may_send(&LIMITS));
    tx.on_echo(10);
    assert_eq!((tx.may_send(&LIMITS), tx.send(100)), (true, 10));
    assert_eq!(rx.on_frame(10, true), Verdict::Accept);
}

/// An acknowledgement of a frame that is not outstanding has no effect.
#[test]
fn stray_acknowledgements_are_ignored() {
    let mut tx = Transmitter::default();
    for _ in 0..5 {
        tx.send(100);
    }
    assert_eq!((tx.on_ack(7), tx.on_nack(9), tx.on_ack(MASK), tx.outstanding()), (0, 0, 0, 5));
    assert!(!tx.replays());
    assert_eq!(tx.on_ack(4), 5);
    assert_eq!((tx.on_ack(4), tx.on_timeout(&LIMITS)), (0, Timeout::Idle));
}

/// Numbers wrap at 2^20.
#[test]
fn sequence_numbers_wrap() {
    let (mut tx, mut rx) = (Transmitter::default(), Receiver::default());
    for _ in 0..SEQUENCES + 10 {
        let number = tx.send(64);
        assert_eq!(rx.on_frame(number, true), Verdict::Accept);
        assert_eq!(tx.on_ack(number), 1);
    }
    assert_eq!(tx.send(64), 10);
    assert_eq!(rx.on_frame(11, true), Verdict::Early);
    assert_eq!(rx.on_frame(MASK, true), Verdict::Duplicate);
}

/// A NACK is said once for each loss. If it is lost, only the timer helps.
#[test]
fn a_receiver_says_one_nack_for_a_loss() {
    let mut rx = Receiver::default();
    assert_eq!(rx.on_frame(1, true), Verdict::Early);
    assert_eq!(rx.word(), Some(Word::Nack(MASK)));
    for number in [2, 3, 0] {
        rx.on_frame(number, number != 0);
        assert_eq!(rx.word(), None, "{number}");
    }
    assert_eq!((rx.on_frame(0, true), rx.word()), (Verdict::Accept, Some(Word::Ack(0))));
}
