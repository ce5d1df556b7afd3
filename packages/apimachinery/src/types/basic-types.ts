/** What the generated kinds are made of, and no type of the API says. */

/** A resource amount as written: `2`, `500m`, `1Gi`. */
export type QuantityText = string;

export type ResourceList = Record<string, QuantityText>;

export type IntOrString = number | string;

/** meta/v1 Condition, and the older per-kind condition shapes that lack some of its fields. */
export interface Condition {
  type: string;
  status: 'True' | 'False' | 'Unknown';
  observedGeneration?: number;
  lastTransitionTime?: string;
  reason?: string;
  message?: string;
}
