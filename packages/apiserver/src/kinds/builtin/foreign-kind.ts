/** An object that is not of the kind it stands for. */
import { apiVersionOf, type GroupVersionKind, parseApiVersion } from '@coracle/apimachinery/meta/gvk';
import { builtinTypeName } from '@coracle/apimachinery/types/builtin-types';

interface TypeMeta {
  readonly apiVersion: string;
  readonly kind: string;
}

const knows = ({ apiVersion, kind }: TypeMeta): boolean =>
  builtinTypeName({ ...parseApiVersion(apiVersion), kind }) !== undefined;

/** Why an object of another kind or version is not read as one of `wanted`. */
export const foreignKind = (wanted: GroupVersionKind, { apiVersion, kind }: TypeMeta): string =>
  `it is of kind ${kind} of ${apiVersion}, not ${wanted.kind} of ${apiVersionOf(wanted)}`;

/** True for a registered version of the kind. */
export const isVersionOf = (wanted: GroupVersionKind, given: TypeMeta): boolean =>
  knows(given) && parseApiVersion(given.apiVersion).group === wanted.group && given.kind === wanted.kind;

/** True for the very version. */
export const isOfKind = (wanted: GroupVersionKind, given: TypeMeta): boolean =>
  given.apiVersion === apiVersionOf(wanted) && given.kind === wanted.kind;
