/** The real clock, for servers and controllers in the process of a test. */
import { type Clock, systemClock } from '../../packages/runtime/src/clock/clock.ts';

/** Waits for no idle moment, so that an event is written before what is done next: tests look at both. */
export const promptClock: Clock = { ...systemClock, whenIdle: () => undefined };
