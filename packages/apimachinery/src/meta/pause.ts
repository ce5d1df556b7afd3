/** Lets others in between the pieces of work that takes long; `nextTurn` of runtime/clock. */
export type Pause = () => Promise<void>;

/** For work that nobody else waits for. */
export const NO_PAUSE: Pause = async () => {};
