/** CDI's roles for users, as far as its kinds are served here; they are joined to admin, edit and view. */
import { CDI_GROUP } from '../../kinds/cdi/kinds.ts';

const RESOURCES = ['datavolumes', 'datasources', 'dataimportcrons'];

/** Where tokens for uploads are asked for. */
export const UPLOAD_GROUP = 'upload.cdi.kubevirt.io';

interface Right {
  readonly group?: string;
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}

const role = (name: string, rules: readonly Right[]) => ({
  kind: 'ClusterRole' as const,
  name: `${CDI_GROUP}:${name}`,
  labels: { [`rbac.authorization.k8s.io/aggregate-to-${name}`]: 'true' },
  rules: rules.map(({ group = CDI_GROUP, resources, verbs }) => ({
    apiGroups: [group],
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
      { group: UPLOAD_GROUP, resources: ['uploadtokenrequests'], verbs: ['*'] },
    ]),
  ),
  role('view', [{ resources: RESOURCES, verbs: ['get', 'list', 'watch'] }]),
];
