/**
 * What an update of a definition may leave as it found it. Rules have become stricter over the years; what an accepted
 * definition was allowed is not asked of its next version (apiextensions validation.go, validationOptions).
 */

/** Each flag lifts one rule. */
export interface Tolerance {
  readonly withoutSchema: boolean;
  readonly unknownTypes: boolean;
  readonly notStructural: boolean;
  readonly unprunedDefaults: boolean;
  readonly granularSetItems: boolean;
  readonly looseMapKeys: boolean;
  readonly unknownReviewVersions: boolean;
  /** Also before the definition is established: certificates may come later. */
  readonly brokenCaBundle: boolean;
  /** Versions whose selectable fields may be more than are allowed. */
  readonly manySelectableFields: ReadonlySet<string>;
}

/** For a definition that is new. */
export const NO_TOLERANCE: Tolerance = {
  withoutSchema: false,
  unknownTypes: false,
  notStructural: false,
  unprunedDefaults: false,
  granularSetItems: false,
  looseMapKeys: false,
  unknownReviewVersions: false,
  brokenCaBundle: true,
  manySelectableFields: new Set(),
};

export const MAX_SELECTABLE_FIELDS = 8;
export const REVIEW_VERSIONS: readonly string[] = ['v1', 'v1beta1'];
