/** Lets others in between the pieces of work that takes long; `nextTurn` of base/clock. */
export type Pause = () => Promise<void>;
