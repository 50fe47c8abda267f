console.log(process.memoryUsage().heapTotal > 0, require('v8').getHeapStatistics().heap_size_limit, process.resourceUsage().maxRSS > 0)
