/*
 * A page of metrics, as `vial top` reads it: refused, or numbers.
 */
#include "cli/scrape.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_scrape struct scrape s = { 0 };
	char label[SCRAPE_LABEL_MAX];
	struct err e = { 0 };

	if (scrape_parse(&s, (const char *)data, size, &e) < 0) {
		if (e.code == ERR_NONE || s.samples)
			abort();
		return 0;
	}
	for (size_t i = 0; i < s.count; i++) {
		if (!isfinite(s.samples[i].value) || !s.samples[i].name[0])
			abort();
		scrape_label(label, &s.samples[i], "le");
		if (strlen(label) >= sizeof(label))
			abort();
		(void)scrape_sum(&s, s.samples[i].name, "a", label);
	}
	(void)scrape_quantile(&s, NULL, "h", NULL, NULL, 0.5);
	(void)scrape_quantile(&s, &s, "h", "a", "b", 0.95);
	return 0;
}
