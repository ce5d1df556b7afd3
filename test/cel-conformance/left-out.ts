/** Which cases of the public CEL data do not concern Kubernetes, and why. A failing case that no entry names fails the test. */
import type { ConformanceCase } from './run-conformance.ts';

export interface LeftOut {
  readonly reason: string;
  matches(suite: string, test: ConformanceCase): boolean;
}

const mentions = (test: ConformanceCase, pattern: RegExp): boolean => pattern.test(JSON.stringify(test));

export const LEFT_OUT: readonly LeftOut[] = [
  {
    reason: 'math, encoders and block are extensions that Kubernetes does not load',
    matches: (suite) => /^(math_ext|encoders_ext|block_ext)\//.test(suite),
  },
  {
    reason: 'protobuf messages, enums, extensions and Any: objects of Kubernetes are JSON with a schema',
    matches: (suite, test) =>
      /^(proto2|proto2_ext|proto3|enums|wrappers|dynamic)\//.test(suite) ||
      mentions(test, /TestAllTypes|google\.protobuf\.|GlobalEnum|"messageType"|cel\.expr\.conformance/),
  },
  {
    reason: 'evaluation without a type check: Kubernetes checks every expression',
    matches: (_, test) => test.disableCheck === true,
  },
  {
    reason: 'functions that the case itself declares without giving them a body',
    matches: (_, test) => mentions(test, /"function":/),
  },
  {
    reason: 'names resolved in a container (a package): Kubernetes has none',
    matches: (suite) => suite.startsWith('namespace/'),
  },
  {
    reason:
      'texts of numbers, lists and maps as later versions of the strings extension have them; Kubernetes loads version 2',
    matches: (suite) => suite.startsWith('string_ext/format/'),
  },
  {
    reason:
      'cases that cel-go does not pass either: a repeated key is no error, and nothing is found beyond the end of a text',
    matches: (_, test) => /^(map_value_repeat_key|(last)?indexof_out_of_range)/.test(test.name ?? ''),
  },
  {
    reason: 'an option of cel-go that Kubernetes does not set: to fail where what has no fields is looked into',
    matches: (_, test) => /^(map_null_entry_no_such_key|map_present_key_invalid_field)$/.test(test.name ?? ''),
  },
];

/** Expressions whose deduced type differs from cel-go's, and why that is left so. */
export const OTHER_TYPE: ReadonlyMap<string, string> = new Map([
  ['y', 'resolved in a container'],
  ['[optional.of(1), null][0]', 'cel-go calls an optional joined with null `null`; the value is the same'],
]);
