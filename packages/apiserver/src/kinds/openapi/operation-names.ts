/** Names of operations as kube-openapi makes them: generated clients call their functions by them. */

type GroupVersion = { readonly group: string; readonly version: string };

/** Letters and digits of `text`; what follows another character is capital. */
function word(text: string, capital: boolean): string {
  const joined = text.replace(/[^A-Za-z0-9_]+(.?)/g, (_, next: string) => next.toUpperCase());
  return capital ? joined.charAt(0).toUpperCase() + joined.slice(1) : joined;
}

const groupWord = ({ group }: { readonly group: string }): string =>
  group === '' ? 'core' : group.replace(/\.k8s\.io$/, '');

/** `delete`, `CollectionNamespacedPod` -> `deleteCoreV1CollectionNamespacedPod`. Without a version: of the group. */
export const operationId = (gv: GroupVersion | { readonly group: string }, verb: string, rest: string): string =>
  `${verb}${word(groupWord(gv), true)}${'version' in gv ? word(gv.version, true) : ''}${rest}`;

/** `core_v1`, `rbacAuthorization_v1`, `kubevirtIo_v1`. Without a version: of the group. */
export const operationTag = (gv: GroupVersion | { readonly group: string }): string =>
  `${word(groupWord(gv), false)}${'version' in gv ? `_${word(gv.version, false)}` : ''}`;
