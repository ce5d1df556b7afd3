/** All libraries of the base environment of Kubernetes 1.36, beyond the standard one. */
import type { Overload } from '../declarations.ts';
import { KUBERNETES_LISTS, LISTS, SETS } from './lists.ts';
import { NAMED_FORMATS } from './named-formats.ts';
import { NETWORK } from './network.ts';
import { QUANTITY } from './quantity.ts';
import { REGEX_LIBRARY } from './regex.ts';
import { SEMVER } from './semver.ts';
import { STRINGS } from './strings.ts';
import { URLS } from './url.ts';

export const KUBERNETES: readonly Overload[] = [
  ...STRINGS,
  ...KUBERNETES_LISTS,
  ...LISTS,
  ...SETS,
  ...REGEX_LIBRARY,
  ...URLS,
  ...QUANTITY,
  ...NETWORK,
  ...NAMED_FORMATS,
  ...SEMVER,
];
