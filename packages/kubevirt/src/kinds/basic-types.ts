/** Types of fields that the tables only name. */

/** A resource amount as written: `2`, `"500m"`, `"1Gi"`. */
export type QuantityValue = string | number;

/** Labels and annotations of what is made from a template. */
export interface TemplateMeta {
  name?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  [field: string]: unknown;
}
