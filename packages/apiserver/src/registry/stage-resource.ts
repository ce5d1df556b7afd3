/** A resource by name: every thread knows the built-in ones. */
export interface StageResource {
  readonly group: string;
  readonly version: string;
  /** '' for the kind of a body that is no resource (Scale, Eviction). */
  readonly resource: string;
  readonly kind: string;
}
