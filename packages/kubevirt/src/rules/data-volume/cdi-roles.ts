/** CDI's roles for users, as far as its kinds are served here; they are joined to admin, edit and view. */
import { CDI_GROUP } from '../../kinds/cdi/kinds.ts';

const RESOURCES = ['datavolumes', 'datasources', 'dataimportcrons'];

const role = (name: string, rules: readonly { resources: readonly string[]; verbs: readonly string[] }[]) => ({
  kind: 'ClusterRole' as const,
  name: `${CDI_GROUP}:${name}`,
  labels: { [`rbac.authorization.k8s.io/aggregate-to-${name}`]: 'true' },
  rules: rules.map(({ resources, verbs }) => ({
    apiGroups: [CDI_GROUP],
    resources: [...resources],
    verbs: [...verbs],
  })),
});

/** `datavolumes/source` is the right to copy what lies in a namespace. */
export const CDI_ROLES = [
  ...['admin', 'edit'].map((name) =>
    role(name, [
      { resources: RESOURCES, verbs: ['*'] },
      { resources: ['datavolumes/source'], verbs: ['create'] },
    ]),
  ),
  role('view', [{ resources: RESOURCES, verbs: ['get', 'list', 'watch'] }]),
];
