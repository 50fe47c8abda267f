#include "server/tenant.h"

const struct tenant tenant_local = { .name = "local" };
