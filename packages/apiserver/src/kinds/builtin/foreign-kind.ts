/** What upstream's decoders say of an object that is not of the kind it stands for. */
import { apiVersionOf, type GroupVersionKind, parseApiVersion } from '@coracle/apimachinery/meta/gvk';
import { builtinTypeName } from '@coracle/apimachinery/types/builtin-types';

interface TypeMeta {
  readonly apiVersion: string;
  readonly kind: string;
}

const knows = ({ apiVersion, kind }: TypeMeta): boolean =>
  builtinTypeName({ ...parseApiVersion(apiVersion), kind }) !== undefined;

/** Why an object of a kind that nobody has registered is not read; undefined for one that is registered. */
export const unregisteredKind = (given: TypeMeta): string | undefined =>
  knows(given)
    ? undefined
    : `no kind ${JSON.stringify(given.kind)} is registered for version ${JSON.stringify(given.apiVersion)} in scheme "k8s.io/kubernetes/pkg/api/legacyscheme/scheme.go:30"`;

/** Why an object of another registered kind does not become one of `wanted`. */
export function unknownConversion(wanted: GroupVersionKind, given: TypeMeta): string {
  const internal = wanted.group === '' ? 'core' : wanted.group.split('.', 1)[0];
  const { version } = parseApiVersion(given.apiVersion);
  return `converting (${version}.${given.kind}) to (${internal}.${wanted.kind}): unknown conversion`;
}

/** True for a registered version of the kind. */
export const isVersionOf = (wanted: GroupVersionKind, given: TypeMeta): boolean =>
  knows(given) && parseApiVersion(given.apiVersion).group === wanted.group && given.kind === wanted.kind;

/** True for the very version. */
export const isOfKind = (wanted: GroupVersionKind, given: TypeMeta): boolean =>
  given.apiVersion === apiVersionOf(wanted) && given.kind === wanted.kind;
