// json, csv, base64, compression, hashing, time zones and formats, big numbers, regular expressions.
package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"math/big"
	"math/rand"
	"os"
	"regexp"
	"strconv"
	"strings"
	"text/template"
	"time"
)

type person struct {
	Name  string            `json:"name"`
	Age   int               `json:"age,omitempty"`
	Tags  []string          `json:"tags"`
	Extra map[string]string `json:"extra"`
}

func main() {
	data, _ := json.MarshalIndent(person{"Žofie", 0, []string{"a"}, map[string]string{"z": "1", "b": "2"}}, "", "  ")
	fmt.Println(string(data))
	var p person
	fmt.Println(json.Unmarshal([]byte(`{"name": "Bob", "age": "old"}`), &p), p.Name)
	rows, _ := csv.NewReader(strings.NewReader("a,\"b,c\"\n1,2\n")).ReadAll()
	fmt.Println(rows, base64.StdEncoding.EncodeToString([]byte("text")), crc32.ChecksumIEEE([]byte("abc")))
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	io.WriteString(zip, strings.Repeat("gopher ", 1000))
	zip.Close()
	unzip, _ := gzip.NewReader(&packed)
	text, _ := io.ReadAll(unzip)
	fmt.Printf("%d %x\n", len(text), sha256.Sum256(text))

	moment := time.Date(2024, 2, 29, 23, 30, 0, 0, time.UTC)
	for _, name := range []string{"Europe/Prague", "America/New_York", "Asia/Kolkata"} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(moment.In(zone).Format(time.RFC1123Z))
	}
	parsed, err := time.Parse("2006-01-02 15:04", "2024-13-01 10:00")
	fmt.Println(parsed.IsZero(), err)
	fmt.Println(moment.AddDate(1, 0, 0).Format("Mon 2 Jan 2006"), moment.YearDay(), 90*time.Minute, moment.Weekday())

	power := new(big.Int).Exp(big.NewInt(3), big.NewInt(200), nil)
	fmt.Println(power, new(big.Rat).SetFrac64(6, 8), math.Sqrt2, math.Inf(-1), math.MaxInt64)
	source := rand.New(rand.NewSource(42))
	fmt.Println(source.Intn(1000), source.Intn(1000), source.Perm(5), source.Float64())
	re := regexp.MustCompile(`(?P<key>\w+)=(\d+)`)
	fmt.Println(re.FindAllStringSubmatch("a=1 b=22 c=x", -1), re.ReplaceAllString("k=5", "$2=${key}"))
	_, err = strconv.Atoi("12a")
	fmt.Println(err, strconv.Quote("tab\t"), strconv.FormatInt(-255, 16))
	template.Must(template.New("t").Parse("{{range $i, $w := .}}{{$i}}:{{$w | printf \"%q\"}} {{end}}\n")).Execute(os.Stdout, []string{"x", "y"})
}
