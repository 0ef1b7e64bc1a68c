/* Ownership of ONE operation between the centre and two environments, as libs/landbridge/domain/ownership decides it.
 *
 * Messages are facts that stay: once said they may be heard at any later time, again, in any order, or never. So loss,
 * delay, repetition, reordering and cuts of any length are all in it. Time has no end: what counts are remaining ticks.
 * Hello, inventory and reconciliation are one step; so is a claim with its grant.
 *
 *   POLICY   0 = stops by itself (checkpoint-then-stop, stop-after-grace), 1 = runs on (continue, must-finish)
 *   RESTART  a dispatcher loses its process once          RESTORE  an environment loses its records once; its work
 *   CANCEL   a person cancels                                      may run on, and the lease chain may not betray it
 *   MOVE     a person moves it to the other environment   OVERRIDE a person frees it although it may run
 *   RECOVER  the centre's store goes back once, a new generation begins
 *
 * WITHOUT_<rule> removes the rule of that name (rules.py). test_model.py tells which of them make the search fail.
 */
#ifndef POLICY
#define POLICY 0
#endif
#ifndef TERMS
#define TERMS 2
#endif
#define TTL 1
#define DRIFT 1
#define GRACE 1
#ifdef WITHOUT_expiry_waits_drift
#define WAIT (TTL + 1)
#else
#define WAIT (TTL + DRIFT + GRACE + 1)
#endif
#define OLDEST (TTL + DRIFT + GRACE)

#define IDLE 0
#define OFFERED 1
#define CLAIMED 2
#define OVER 3
#define RECOVERING 4

#define EMPTY 0
#define CREATED 1
#define RUNNING 2
#define FINISHED 3
#define TOMBSTONE 4

#define OF(e) (1 << (e))
#define FACT(e, t) (1 << ((e) * TERMS + (t)))
#define SLOT(i, e) slot[(i) * 3 + (e)]
#define GRANTED_IN(i, e) slotterm[(i) * 3 + (e)]
#define ACTIVE(s) ((s) == CREATED || (s) == RUNNING)
#define FINAL(s) ((s) == FINISHED || (s) == TOMBSTONE)
#define HERE owner[E]
#define PICK(e) if :: e = 1 :: e = 2 fi

/* A final report counts for the term of the latest grant, or for a newer one that is in force. */
#define COUNTS(set) ((set & FACT(E, grantterm - 1)) || (term[HERE] > grantterm - 1 && (set & FACT(E, term[HERE]))))
#if TERMS == 2
#define ANYTERM(set, e) (set & (FACT(e, 0) | FACT(e, 1)))
#else
#define ANYTERM(set, e) (set & (FACT(e, 0) | FACT(e, 1) | FACT(e, 2)))
#endif
#ifdef WITHOUT_terminal_needs_term
#define ENDED ANYTERM(ended, E)
#else
#define ENDED COUNTS(ended)
#endif
#ifdef WITHOUT_relinquish_needs_term
#define GIVENBACK ANYTERM(gone, E)
#else
#define GIVENBACK COUNTS(gone)
#endif
#if POLICY == 0 || defined(WITHOUT_continue_never_expires)
#define EXPIRES(i) (patience[i] == 0)
#else
#define EXPIRES(i) false
#endif
#if POLICY == 0
#define CLOCKMAYPASS(i) (runs[i] == 0 || lease[i] > 0)
#else
#define CLOCKMAYPASS(i) true
#endif
#ifdef WITHOUT_true_start_check
#define MAYSTART(i, e) (SLOT(i, e) == CREATED)
#else
#define MAYSTART(i, e) (SLOT(i, e) == CREATED && lease[i] > GRACE && GRANTED_IN(i, e) == held[i])
#endif
#ifdef WITHOUT_stop_lower_first
#define LOWERGONE(i, e) true
#else
#define LOWERGONE(i, e) ((e) == 1 || !ACTIVE(SLOT(i, 1)))
#endif
#ifdef WITHOUT_tombstone_before_relinquish
#define OCCUPY(i, e) SLOT(i, e) = EMPTY
#else
#define OCCUPY(i, e) SLOT(i, e) = TOMBSTONE
#endif
#ifdef WITHOUT_lease_from_send
#define USED(i) 0
#else
#define USED(i) age[i]
#endif
#ifdef WITHOUT_keep_slot_until_term_advances
#define TERMISOVER(i, e) true
#else
#define TERMISOVER(i, e) (!(granted & FACT(e, held[i])))
#endif
#ifdef WITHOUT_no_grant_while_record_lost
#define RECORDED true
#else
#define RECORDED (!missing)
#endif
#ifdef WITHOUT_no_grant_after_cancel
#define NOTCANCELLED true
#else
#define NOTCANCELLED (!cancel)
#endif
#ifdef WITHOUT_term_bump_on_release
#define RAISE(i) skip
#else
#define RAISE(i) term[i] = term[i] + 1
#endif
#ifdef WITHOUT_hello_raises_term
#define HELLORAISES(i) skip
#define MAYHELLO(i) true
#else
#define HELLORAISES(i) term[i] = term[i] + 1
#define MAYHELLO(i) (term[i] < TERMS - 1)
#endif

/* the centre's store */
byte placed = IDLE; byte E = 0; byte issued = 0; byte grantterm = 0; bit cancel = 0; bit missing = 0; byte pinned = 0;
byte owner[3]; byte term[2]; byte patience[2];
/* facts that were said */
short granted = 0; short gone = 0; short ended = 0; byte stops = 0;
/* the environments: durable slots, what truly runs, the lease, the dispatcher's mind */
byte slot[6]; byte slotterm[6]; byte runs[2];
byte asked[2]; byte age[2]; byte reply[2]; byte lease[2]; byte held[2];
byte pending[2]; byte pendingterm[2]; byte fresh[2];   /* fresh: 1 = has to say hello, 2 = its hello was answered */
/* known to nobody */
byte grantee[3]; byte commits = 0; bit closed = 0; bit excused = 0; bit betrayed = 0; bit struck = 0; bit moved = 0;
#ifdef RECOVER
byte oldE, oldplaced, oldterm, old0, old1; bit oldcancel; bit kept = 0; bit back = 0;
byte shown = 0; byte best = 0; byte bestat = 0;
#endif

inline nothing_runs() { assert(excused || (runs[0] == 0 && runs[1] == 0)) }

inline close_it() { commits++; assert(commits <= 1); nothing_runs(); placed = OVER; closed = 1 }

/* The full inventory of an environment that has said hello. */
inline compare(i) {
  if
  :: placed == CLAIMED && HERE == i ->
       grantterm = term[i] + 1;
       if
       :: SLOT(i, E) != EMPTY -> missing = 0
       :: else -> missing = 1;
            if :: POLICY == 1 && betrayed -> skip                     /* counts as running: a person decides */
               :: else -> stops = stops | OF(E) fi
       fi
  :: else
  fi
}

proctype Centre() {
  byte i;
  do
  :: atomic { placed == IDLE && !cancel && issued < 2 ->
       if :: pinned != 0 -> i = pinned - 1
          :: pinned == 0 -> i = 0
          :: pinned == 0 && E > 0 -> i = 1 fi;
#ifdef WITHOUT_new_generation_on_restore
       E = E + 1; if :: E > issued -> issued = E :: else fi;
#else
       issued = issued + 1; E = issued;
#endif
       owner[E] = i; placed = OFFERED; grantterm = 0; missing = 0; i = 0;
#ifdef WITHOUT_two_phase
       granted = granted | FACT(E, term[HERE])
#endif
     }
  :: atomic { (placed == OFFERED || placed == CLAIMED) && NOTCANCELLED && RECORDED && fresh[HERE] == 0 &&
              held[HERE] == term[HERE] && (placed == OFFERED || !(granted & FACT(E, term[HERE]))) ->
       assert(grantee[E] == 0 || grantee[E] == HERE + 1);
       assert(!cancel);
       grantee[E] = HERE + 1; placed = CLAIMED; grantterm = term[HERE] + 1; granted = granted | FACT(E, term[HERE]) }
  :: atomic { placed == OFFERED -> placed = IDLE }
  :: atomic { placed == CLAIMED && GIVENBACK -> placed = IDLE; missing = 0 }
  :: atomic { placed == CLAIMED && term[HERE] < TERMS - 1 && EXPIRES(HERE) -> RAISE(HERE); placed = IDLE; missing = 0 }
#ifdef WITHOUT_terminal_needs_current_epoch
  :: atomic { placed != OVER && placed != RECOVERING && ended != 0 -> close_it(); ended = 0 }
#else
  :: atomic { placed == CLAIMED && ENDED -> close_it() }
#endif
  /* thought lost, yet completed, and nothing was placed since */
  :: atomic { placed == IDLE && E > 0 && grantterm > 0 && !cancel && (ended & FACT(E, grantterm - 1)) -> close_it() }
#ifdef CANCEL
  :: atomic { !cancel && placed != OVER && placed != RECOVERING && E > 0 -> cancel = 1; stops = stops | OF(E) }
  :: atomic { cancel && (placed == IDLE || placed == OFFERED) -> nothing_runs(); placed = OVER; closed = 1 }
#endif
#ifdef MOVE
  :: atomic { placed == CLAIMED && !moved && !cancel -> moved = 1; pinned = 2 - HERE; stops = stops | OF(E) }
#endif
#ifdef OVERRIDE
  :: atomic { placed == CLAIMED && !excused && term[HERE] < TERMS - 1 ->
       excused = 1; RAISE(HERE); placed = IDLE; missing = 0 }
#endif
  :: atomic { asked[0] == 1 && fresh[0] == 0 -> asked[0] = 2; reply[0] = term[0]; patience[0] = WAIT }
  :: atomic { asked[1] == 1 && fresh[1] == 0 -> asked[1] = 2; reply[1] = term[1]; patience[1] = WAIT }
#ifdef RECOVER
  :: atomic { placed != RECOVERING && !kept && !back ->
       kept = 1; oldE = E; oldplaced = placed; oldterm = grantterm; oldcancel = cancel; old0 = term[0]; old1 = term[1] }
  :: atomic { kept && !back && term[0] < TERMS - 1 && term[1] < TERMS - 1 ->
       back = 1; kept = 0; E = oldE; placed = oldplaced; grantterm = oldterm; cancel = oldcancel; missing = 0;
#ifdef WITHOUT_new_generation_on_restore
       term[0] = old0; term[1] = old1;
#else
       term[0] = term[0] + 1; term[1] = term[1] + 1;
#endif
       patience[0] = WAIT; patience[1] = WAIT; oldE = 0; oldplaced = 0; oldterm = 0; oldcancel = 0; old0 = 0; old1 = 0;
       if :: placed == OVER :: else ->
            commits = 0; closed = 0;                                  /* that end was lost with the store */
#ifndef WITHOUT_reconcile_after_restore
            placed = RECOVERING
#endif
       fi }
  :: atomic { placed == RECOVERING && !(shown & 1) && held[0] == term[0] -> shown = shown | 1; i = 2;
       do :: i > 0 && SLOT(0, i) != EMPTY && i > best -> best = i; bestat = 0; i = 0
          :: i > 0 && !(SLOT(0, i) != EMPTY && i > best) -> i--
          :: i == 0 -> break od }
  :: atomic { placed == RECOVERING && !(shown & 2) && held[1] == term[1] -> shown = shown | 2; i = 2;
       do :: i > 0 && SLOT(1, i) != EMPTY && i > best -> best = i; bestat = 1; i = 0
          :: i > 0 && !(SLOT(1, i) != EMPTY && i > best) -> i--
          :: i == 0 -> break od }
  :: atomic { placed == RECOVERING && shown == 3 ->
       if :: best != 0 && SLOT(bestat, best) != TOMBSTONE ->
               E = best; owner[E] = bestat; placed = CLAIMED; grantterm = term[bestat] + 1
          :: else -> placed = IDLE; grantterm = 0
       fi }
#endif
  od
}

proctype Environment(byte i) {
  byte e; byte t;
  do
  /* lease: it counts from when the request was sent */
  :: atomic { asked[i] == 0 && (lease[i] <= GRACE + 1 || fresh[i] == 1) -> asked[i] = 1; age[i] = 0 }
  :: atomic { asked[i] == 1 && fresh[i] == 1 && MAYHELLO(i) ->        /* heard by the centre */
       HELLORAISES(i); compare(i); fresh[i] = 2; asked[i] = 2; reply[i] = term[i]; patience[i] = WAIT }
  :: atomic { asked[i] == 2 ->
       if :: t = 0 :: t = DRIFT fi;
       if :: TTL + t + GRACE > USED(i) -> lease[i] = TTL + t + GRACE - USED(i) :: else -> lease[i] = 0 fi;
       held[i] = reply[i]; asked[i] = 0; age[i] = 0; reply[i] = 0; t = 0;
       if :: fresh[i] == 2 -> fresh[i] = 0 :: else fi }
  /* a grant is heard; the dispatcher may then be paused for ever so long before it creates the slot */
  :: atomic { pending[i] == 0 && fresh[i] == 0 && granted != 0 ->
       PICK(e);
       if :: (granted & FACT(e, held[i])) && owner[e] == i && SLOT(i, e) == EMPTY -> pending[i] = e; pendingterm[i] = held[i]
          :: else fi; e = 0 }
  :: atomic { pending[i] != 0 ->
       if :: SLOT(i, pending[i]) == EMPTY ->
               SLOT(i, pending[i]) = CREATED; GRANTED_IN(i, pending[i]) = pendingterm[i]
          :: else fi; pending[i] = 0; pendingterm[i] = 0 }
  /* a slot that has not started goes on under a newer grant */
  :: atomic { fresh[i] == 0 && granted != 0 ->
       PICK(e);
       if :: SLOT(i, e) == CREATED && GRANTED_IN(i, e) < held[i] && (granted & FACT(e, held[i])) ->
               GRANTED_IN(i, e) = held[i]
          :: else fi; e = 0 }
  /* the guardian at the true start */
  :: atomic { (SLOT(i, 1) == CREATED || SLOT(i, 2) == CREATED) ->
       PICK(e);
       if :: MAYSTART(i, e) && LOWERGONE(i, e) ->
               assert(runs[i] == 0);
               assert(excused || runs[1 - i] == 0);
               assert(excused || !closed);
               runs[i] = runs[i] | OF(e); SLOT(i, e) = RUNNING
          :: else fi; e = 0 }
  :: atomic { runs[i] != 0 ->
       if :: runs[i] == 2 -> e = 1 :: else -> e = 2 fi;
       runs[i] = 0;
       if :: SLOT(i, e) == RUNNING -> SLOT(i, e) = FINISHED; GRANTED_IN(i, e) = 0; ended = ended | FACT(e, held[i])
          :: else fi; e = 0 }                                          /* unrecorded work leaves no report */
  /* the slot is the record of what was said, and says it again in a newer term */
  :: atomic { fresh[i] == 0 && (FINAL(SLOT(i, 1)) || FINAL(SLOT(i, 2))) ->
       PICK(e);
       if :: owner[e] == i && SLOT(i, e) == FINISHED -> ended = ended | FACT(e, held[i])
          :: owner[e] == i && SLOT(i, e) == TOMBSTONE -> gone = gone | FACT(e, held[i])
          :: else fi; e = 0 }
#if POLICY == 0
  /* the guardian stops it by itself, whoever else is dead */
  :: atomic { runs[i] != 0 && lease[i] <= GRACE ->
       if :: runs[i] == 2 -> e = 1 :: else -> e = 2 fi;
       runs[i] = 0;
       if :: SLOT(i, e) == RUNNING -> SLOT(i, e) = TOMBSTONE; GRANTED_IN(i, e) = 0 :: else fi; e = 0 }
#endif
  /* given back: as told, or by itself before it started. First the slot is occupied, then it is said */
  :: atomic { fresh[i] == 0 && (granted != 0 || stops != 0) ->
       PICK(e);
       if :: owner[e] == i && SLOT(i, e) != FINISHED && SLOT(i, e) != TOMBSTONE &&
             ((stops & OF(e)) || ((granted & FACT(e, held[i])) && SLOT(i, e) != RUNNING && !(runs[i] & OF(e)))) ->
               runs[i] = runs[i] & ~OF(e); OCCUPY(i, e); GRANTED_IN(i, e) = 0; gone = gone | FACT(e, held[i])
          :: else fi; e = 0 }
  /* a slot that the centre has settled goes once the term is over */
  :: atomic { fresh[i] == 0 && (closed || E == 2) && (FINAL(SLOT(i, 1)) || FINAL(SLOT(i, 2))) ->
       PICK(e);
       if :: owner[e] == i && (closed || e < E) && FINAL(SLOT(i, e)) && TERMISOVER(i, e) -> SLOT(i, e) = EMPTY
          :: else fi; e = 0 }
#ifdef RESTART
  :: atomic { i == 0 && !struck && granted != 0 ->
       struck = 1; pending[i] = 0; pendingterm[i] = 0; asked[i] = 0; age[i] = 0; reply[i] = 0; fresh[i] = 1 }
#endif
#ifdef RESTORE
  :: atomic { i == 0 && !struck && granted != 0 ->
       struck = 1; pending[i] = 0; pendingterm[i] = 0; asked[i] = 0; age[i] = 0; reply[i] = 0; fresh[i] = 1;
       SLOT(i, 1) = EMPTY; SLOT(i, 2) = EMPTY; GRANTED_IN(i, 1) = 0; GRANTED_IN(i, 2) = 0;
       if :: betrayed = 1 :: skip fi;
       if :: runs[i] = 0; lease[i] = 0 :: skip fi }                    /* its work dies with it, or runs on */
#endif
  od
}

#define COUNTDOWN(x) if :: x > 0 -> x = x - 1 :: else fi
#define GROWOLD(i) if :: asked[i] > 0 && age[i] < OLDEST -> age[i] = age[i] + 1 :: else fi
proctype Clock() {
  do
  :: atomic { CLOCKMAYPASS(0) && CLOCKMAYPASS(1) ->
       GROWOLD(0); GROWOLD(1); COUNTDOWN(lease[0]); COUNTDOWN(lease[1]); COUNTDOWN(patience[0]); COUNTDOWN(patience[1]) }
  od
}

init { atomic { run Centre(); run Environment(0); run Environment(1); run Clock() } }
