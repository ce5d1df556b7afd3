/** Why a node refuses a Pod. */
export interface Refusal {
  /** Only resources give more than one. */
  readonly reasons: readonly string[];
  /** False when no Pod that leaves the node would change it: preemption need not try. */
  readonly mayChange: boolean;
}

/** A refusal whatever Pods leave the node. */
export const final = (reason: string): Refusal => ({ reasons: [reason], mayChange: false });

/** A refusal that may end when Pods leave the node. */
export const forNow = (reason: string): Refusal => ({ reasons: [reason], mayChange: true });
