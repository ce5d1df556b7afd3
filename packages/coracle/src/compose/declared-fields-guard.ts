/**
 * The guards of declared fields and of dependents within the embedded server: the rules of `gitops/guard`, where upstream's webhook stands. An
 * object without the label of a declared version costs two look-ups of that label.
 */
import type { ReadonlyObject, UnstructuredObject } from '@coracle/apimachinery/meta/object';
import type { AdmissionAttributes, AdmissionPlugin } from '@coracle/apiserver/admission/plugin';
import { denial } from '@coracle/apiserver/admission/webhook/webhook-failure';
import type { ObjectStore } from '@coracle/apiserver/cache/object-store';
import { decideDelete } from '@coracle/gitops/guard/decide-delete';
import { GUARD_NAME, guardHookName, isGuardOn, refusalOfWrite } from '@coracle/gitops/guard/decide-write';
import { DECLARED_VERSION, DEPENDENTS } from '@coracle/gitops/status/metadata-keys';
import { GUARD_TRUSTED } from './components.ts';

const CONFIGURATION = {
  prefix: 'admissionregistration.k8s.io/validatingwebhookconfigurations',
  namespace: '',
  name: GUARD_NAME,
};
/** Where upstream's components are, its own webhook decides. */
const UPSTREAM = { prefix: 'apps/deployments', namespace: 'config-management-system', name: 'reconciler-manager' };

type Seen = Readonly<UnstructuredObject> | undefined;

/** Makes the plug-in. */
export function declaredFieldsGuard({ store }: { readonly store: Pick<ObjectStore, 'get'> }): AdmissionPlugin {
  const isAside = (): boolean => store.get(UPSTREAM) !== undefined;
  const isOn = (): boolean => isGuardOn(store.get(CONFIGURATION)?.object as ReadonlyObject | undefined) && !isAside();
  const checkDelete = ({ info, user, oldObject, warn }: AdmissionAttributes): void => {
    // Who depends on an object stands there only when its sync, or it itself, asks for this: no configuration is needed.
    if (oldObject?.metadata.annotations?.[DEPENDENTS] === undefined || isAside()) return;
    const decided = decideDelete({ username: user.username, oldObject }, GUARD_TRUSTED);
    if (decided.decision === 'warn') warn(decided.message);
    if (decided.decision === 'refuse')
      throw denial(guardHookName(info), { code: 403, reason: 'Forbidden', message: decided.message });
  };
  return {
    name: 'DeclaredFieldsGuard',
    matches: (operation, _info, subresource) => subresource === '' && operation !== 'CONNECT',
    validate(attributes: AdmissionAttributes) {
      const { operation, info, user, dryRun, object, oldObject } = attributes;
      // A dry run changes nothing, and a plan of a source is made of them.
      if (dryRun) return;
      if (operation === 'DELETE') checkDelete(attributes);
      const isConcerned = isDeclared(object) || isDeclared(oldObject) || info.resource === 'resourcegroups';
      if (!isConcerned || operation === 'CONNECT' || !isOn()) return;
      const message = refusalOfWrite({ operation, username: user.username, object, oldObject }, GUARD_TRUSTED);
      if (message !== undefined) throw denial(guardHookName(info), { code: 403, reason: 'Forbidden', message });
    },
  };
}

const isDeclared = (object: Seen): boolean => object?.metadata.labels?.[DECLARED_VERSION] !== undefined;
