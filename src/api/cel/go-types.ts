/** Names of values in Go, which some messages of upstream let through. */
import { isFailure } from './errors.ts';
import { CelOpaque, CelStruct, runtimeTypeName } from './values.ts';

const NAMES: Readonly<Record<string, string>> = {
  null_type: 'types.Null',
  bool: 'types.Bool',
  int: 'types.Int',
  uint: 'types.Uint',
  double: 'types.Double',
  string: 'types.String',
  bytes: 'types.Bytes',
  list: '*types.baseList',
  map: '*types.baseMap',
  type: '*types.Type',
  optional_type: '*types.Optional',
  'google.protobuf.Timestamp': 'types.Timestamp',
  'google.protobuf.Duration': 'types.Duration',
};

/** The Go type of a value, or of a failure. */
export function goTypeName(value: unknown): string {
  if (isFailure(value)) return '*types.Err';
  if (value instanceof CelOpaque || value instanceof CelStruct) return `cel.${value.typeName.split('.').at(-1)}`;
  return NAMES[runtimeTypeName(value)]!;
}

const NATIVE: Readonly<Record<string, string>> = {
  null_type: '<nil>',
  list: '[]interface {}',
  map: 'map[string]interface {}',
};

/** The same of a value that was read from an object and not looked at yet. */
export const goNativeName = (value: unknown): string => NATIVE[runtimeTypeName(value)] ?? goTypeName(value);
