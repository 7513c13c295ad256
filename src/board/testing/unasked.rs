//! The methods that a board of tests leaves out.

/// Fills an `impl Board` with methods that its tests never call. They panic.
macro_rules! unasked {
    ($($method:ident)*) => {
        $(unasked!(@ $method);)*
    };
    (@ post) => {
        unasked!(post ['b 'c] (&'b [crate::job::Draft], Option<&'c crate::job::Claimant>) -> Vec<crate::board::Result<crate::board::Posted>>);
    };
    (@ claim) => {
        unasked!(claim ['b 'c] (&'b [crate::job::JobKey], &'c crate::job::Claimant, usize, crate::board::ClaimRules) -> Vec<crate::board::Result<crate::job::Claimed>>);
    };
    (@ lease_term) => { unasked!(lease_term [] (std::time::Duration) -> std::time::Duration); };
    (@ revise) => { unasked!(revise ['b] (&'b [crate::job::Revision]) -> Vec<crate::board::Result<()>>); };
    (@ purge) => { unasked!(purge ['b] (&'b [crate::job::Purge]) -> Vec<crate::board::Result<crate::board::Settled>>); };
    (@ events) => { unasked!(events [] () -> crate::board::Events<'a>); };
    (@ register) => { unasked!(register ['b] (&'b crate::job::Conductor) -> ()); };
    (@ publish) => { unasked!(publish ['b] (&'b crate::job::ConductorReport) -> ()); };
    (@ registry) => {
        unasked!(registry [] () -> (Vec<crate::job::Conductor>, crate::board::Examined));
    };
    (@ pause) => { unasked!(pause ['b] (&'b crate::job::Pause) -> ()); };
    (@ resume) => { unasked!(resume ['b 'c] (&'b str, &'c crate::job::AuditEntry) -> bool); };
    (@ pauses) => { unasked!(pauses [] () -> Vec<crate::job::Pause>); };
    (@ begin_move) => { unasked!(begin_move ['b] (&'b crate::job::MoveRecord) -> ()); };
    (@ moves) => { unasked!(moves [] () -> Vec<crate::job::MoveRecord>); };
    (@ end_moves) => { unasked!(end_moves ['b] (&'b [crate::job::MoveRecord]) -> ()); };
    (@ health) => { unasked!(health [] () -> crate::board::Health); };
    (@ examine) => { unasked!(examine [] (crate::board::Part) -> crate::board::Examined); };
    // The signature that `async_trait` gives to a method.
    ($method:ident [$($life:lifetime)*] ($($arg:ty),*) -> $answer:ty) => {
        fn $method<'a, $($life,)* 'z>(
            &'a self,
            $(_: $arg),*
        ) -> futures_util::future::BoxFuture<'z, crate::board::Result<$answer>>
        where
            'a: 'z,
            $($life: 'z,)*
            Self: 'z,
        {
            panic!("no test of this board calls {}", stringify!($method))
        }
    };
}
